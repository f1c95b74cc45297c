/* Internals of the fake libnvidia-ml.so.1; what each file provides to the
 * others. No NVIDIA code: only the public ABI is imitated (abi.h, checked by
 * abi_check.c). */
#ifndef FAKENVML_INTERNAL_H
#define FAKENVML_INTERNAL_H
#define _GNU_SOURCE
#include "abi.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MIB 1048576ULL
#define MAXDEV 64
#define MAXPROC 4096
#define MAXSPAN 8
#define MAXMIG 16
#define MAGIC 0xfa4e6e766d6cULL

enum {
  OK,
  UNINITIALIZED,
  INVALID_ARGUMENT,
  NOT_SUPPORTED,
  NO_PERMISSION,
  ALREADY_INITIALIZED,
  NOT_FOUND,
  INSUFFICIENT_SIZE,
  INSUFFICIENT_POWER,
  DRIVER_NOT_LOADED,
  TIMEOUT,
  IRQ_ISSUE,
  LIBRARY_NOT_FOUND,
  FUNCTION_NOT_FOUND,
  CORRUPTED_INFOROM,
  GPU_IS_LOST,
  RESET_REQUIRED,
  OPERATING_SYSTEM,
  LIB_RM_VERSION_MISMATCH,
  IN_USE,
  MEMORY,
  NO_DATA,
  ARGUMENT_VERSION_MISMATCH = 25,
  NOT_READY = 27,
  GPU_NOT_FOUND = 28,
  UNKNOWN = 999,
  /* not NVML's: what a rule can do instead of returning a code */
  HANG = -1,
  CRASH = -2
};

/* signals.c: a value over time, and its integral */
enum { P_CONST, P_SQUARE, P_SINE, P_RAMP, P_TRACE, P_LIVE };
struct pat {
  int kind, n;
  double a, b, period, duty;
  double *tt, *tv;
  const volatile double *live;
};
enum {
  S_UTIL,
  S_MEMUTIL,
  S_MEM,
  S_BAR1,
  S_TEMP,
  S_MEMTEMP,
  S_POWER,
  S_SMCLK,
  S_MEMCLK,
  S_VIDCLK,
  S_ENC,
  S_DEC,
  S_JPG,
  S_OFA,
  S_PTX,
  S_PRX,
  S_NTX,
  S_NRX,
  S_SMACT,
  S_OCC,
  S_TENSOR,
  S_DRAM,
  S_FP64,
  S_FP32,
  S_FP16,
  S_INT,
  S_FAN,
  S_THROTTLE,
  S_ECC_C,
  S_ECC_U,
  S_REPLAY,
  S_PSTATE,
  NSIG
};
#define NTHROTTLE                                                              \
  9 /* integrals of the bits of S_THROTTLE: time spent under each reason */
extern const char *const signal_names[NSIG];
extern const double signal_defaults[NSIG];

struct span {
  double t0, t1;
};
struct proc {
  u32 pid;
  char type;
  double mem_mib, sm;
};
struct mig {
  int gi, ci;
  char profile[32];
  double mem_mib, used_mib, sm_active;
  struct proc proc; /* pid 0: none */
};
struct dev {
  u64 magic;
  int slot; /* N of gpuN; the index that clients see is device_index() */
  int is_mig;
  struct dev *parent;
  char name[96], uuid[96], serial[32];
  double mem_total_mib, reserved_mib, bar1_total_mib, power_limit_w, phase,
      xid_t;
  int nvlinks, cores, cc_major, cc_minor, arch, brand, mig, ecc_mode, gen,
      width, max_gen, max_width, card_max_gen, persistence, gpm, xid,
      pcie_counters, pcie_counter_bits, proc_stride, proc_old_sm, virtualization;
  u64 pcie_counter_start;
  u32 pci_device_id, pci_subsystem_id;
  struct pat sig[NSIG];
  struct proc *procs;
  int nproc;
  struct mig instances[MAXMIG];
  int ninstances;
  struct span lost[MAXSPAN], gone[MAXSPAN];
  int nlost, ngone;
  int returns; /* how often the card had come back when this handle was given */
  double integ[NSIG], integ_t[NSIG], bits[NTHROTTLE], bits_t;
};
struct pat parse_pat(const char *v);
double ev(const struct pat *p, double t);
double val(struct dev *d, int s);
int returns(const struct dev *d);
struct dev *handle(struct dev *d);
double integral(struct dev *d, int s);
u64 throttle_ns(struct dev *d, u64 mask);

/* scenario.c: what the scenario file says */
struct rule {
  char fn[64];
  int gpu, code;
  struct span when;
};
struct frule {
  int gpu, field, code;
  struct span when;
};
struct pname {
  u32 pid;
  char name[256];
};
extern struct dev D[MAXDEV], M[MAXDEV][MAXMIG];
extern int ndev, cuda_ver, nrule, nfrule, npn, lat_spin;
extern char driver_ver[80], nvml_ver[80];
extern u64 pcie_ns;
extern struct rule R[512];
extern struct frule FR[256];
extern struct pname PN[64];
void scenario_load(void);
int scenario_changed(void);
int within(const struct span *s, int n, double t);
int enumerate(struct dev **out); /* the GPUs listed now, in their order; returns
                                    how many */
int device_index(const struct dev *d); /* -1 where it is not listed */

/* clock.c */
u64 now_ns(void);
u64 wall_us(void); /* what the driver stamps samples with */
double tnow(void); /* the scenario's time in seconds */
void nap(u64 ns);
void clock_base(const char *how);

/* entry.c: counting, latency and faults of every call */
struct fnstat {
  char name[64];
  u64 *cell;
  int nrules;
  u64 lat;
} __attribute__((aligned(64))); /* one stride in the section */
extern struct fnstat __start_fkst[], __stop_fkst[];
extern pthread_mutex_t mu;
extern int refs;
int enter(struct fnstat *s, struct dev *d, int need_init);
void leave(void);
int obey(int code);
int put(char *o, u32 n, const char *s);
void fill_pci(struct dev *d, fk_pci *p); /* system.c */

#define STAT(n)                                                                \
  static struct fnstat st_##n                                                  \
      __attribute__((section("fkst"), used)) = {#n, 0, 0, 0}
#define FN(n, ...)                                                             \
  STAT(n);                                                                     \
  EXPORT int n(__VA_ARGS__)
#define IN(n, d)                                                               \
  do {                                                                         \
    if (!(d)) {                                                                \
      enter(&st_##n, 0, 1);                                                    \
      return INVALID_ARGUMENT;                                                 \
    }                                                                          \
    int r_ = enter(&st_##n, d, 1);                                             \
    if (r_)                                                                    \
      return r_;                                                               \
  } while (0)
#define INS(n)                                                                 \
  do {                                                                         \
    int r_ = enter(&st_##n, 0, 1);                                             \
    if (r_)                                                                    \
      return r_;                                                               \
  } while (0)
#define ARG(x)                                                                 \
  do {                                                                         \
    if (!(x))                                                                  \
      return INVALID_ARGUMENT;                                                 \
  } while (0)
#define GETSTR(n, f)                                                           \
  FN(n, struct dev *d, char *o, u32 len) {                                     \
    IN(n, d);                                                                  \
    return put(o, len, f);                                                     \
  }
#define GETU(n, e)                                                             \
  FN(n, struct dev *d, u32 *o) {                                               \
    IN(n, d);                                                                  \
    ARG(o);                                                                    \
    *o = (u32)(e);                                                             \
    return OK;                                                                 \
  }
#define GETQ(n, e)                                                             \
  FN(n, struct dev *d, u64 *o) {                                               \
    IN(n, d);                                                                  \
    ARG(o);                                                                    \
    *o = (u64)(e);                                                             \
    return OK;                                                                 \
  }
#endif
