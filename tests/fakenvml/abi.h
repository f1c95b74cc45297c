/* Own declarations of the NVML types that the fake library reads or fills.
 * Names differ from NVIDIA's header on purpose, so that abi_check.c can
 * include both and compare sizes and offsets. */
#ifndef FAKENVML_H
#define FAKENVML_H
typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct {
    char bus_id_legacy[16];
    u32 domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} fk_pci;
typedef struct {
    u32 version, domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
    char bus_id[32];
} fk_pci_ext;
typedef struct {
    u32 gpu, memory;
} fk_util;
typedef struct {
    u64 total, free, used;
} fk_mem;
typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} fk_mem2;
typedef struct {
    u32 pid;
    u64 used;
} fk_proc1;
typedef struct {
    u32 pid;
    u64 used;
    u32 gi, ci;
} fk_proc2;
typedef struct {
    u32 pid;
    u64 ts;
    u32 sm, mem, enc, dec;
} fk_procutil;
typedef struct {
    u64 ts;
    u32 pid, sm, mem, enc, dec, jpg, ofa;
} fk_procutil_v1;
typedef struct {
    u32 version, count;
    u64 last_seen;
    fk_procutil_v1 *arr;
} fk_procsutil_v1;
typedef union {
    double d;
    int i;
    u32 u;
    unsigned long ul;
    u64 ull;
    long long sll;
    unsigned short us;
} fk_value;
typedef struct {
    u64 ts;
    fk_value v;
} fk_sample;
typedef struct {
    u32 id, scope;
    long long ts, latency;
    u32 type;
    u32 ret;
    fk_value v;
} fk_field;
typedef struct {
    u32 id;
    u32 ret;
    double value;
    struct {
        char *s, *l, *u;
    } info;
} fk_gpm_metric;
typedef struct {
    u32 version, n;
    void *s1, *s2;
    fk_gpm_metric m[1];
} fk_gpm_get;
typedef struct {
    u32 version, supported;
} fk_gpm_support;
typedef struct {
    u32 version, sensor;
    int temp;
} fk_temp_v1;
typedef struct {
    u32 version, fan, speed;
} fk_fan_v1;
typedef struct {
    u64 l1, l2, dev, reg;
} fk_ecc;
typedef struct {
    u64 ref, viol;
} fk_violation;
typedef struct {
    void *dev;
    u64 type, data;
    u32 gi, ci;
} fk_event;
typedef struct {
    u32 max, high, partial, low, none;
} fk_rowhist;
#endif
