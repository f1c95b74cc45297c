/* A small stand-in for the nvidia-smi command, over whatever libnvidia-ml.so.1
 * the loader finds: -L, --query-gpu=, --query-compute-apps=, --format=csv,...
 * The real command costs far more per start than this one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi.h"
static void *L;
#define CALL(n, ...)                                                                               \
    ({                                                                                             \
        int (*f_)() = (int (*)())dlsym(L, #n);                                                     \
        f_ ? f_(__VA_ARGS__) : 13;                                                                 \
    })
static int nounits;
static void num(int r, const char *fmt, double v, const char *unit) {
    if (r) {
        printf("[N/A]");
        return;
    }
    printf(fmt, v);
    if (!nounits && *unit) printf(" %s", unit);
}
static void field(void *d, const char *f) {
    char s[256] = "";
    u32 u = 0;
    fk_util ut = {0, 0};
    fk_mem m = {0, 0, 0};
    u64 q = 0;
    int r;
    if (!strcmp(f, "index")) {
        r = CALL(nvmlDeviceGetIndex, d, &u);
        num(r, "%.0f", u, "");
    } else if (!strcmp(f, "uuid") || !strcmp(f, "gpu_uuid")) {
        r = CALL(nvmlDeviceGetUUID, d, s, 96);
        printf("%s", r ? "[N/A]" : s);
    } else if (!strcmp(f, "name") || !strcmp(f, "gpu_name")) {
        r = CALL(nvmlDeviceGetName, d, s, 96);
        printf("%s", r ? "[N/A]" : s);
    } else if (!strcmp(f, "driver_version")) {
        r = CALL(nvmlSystemGetDriverVersion, s, 80);
        printf("%s", r ? "[N/A]" : s);
    } else if (!strcmp(f, "utilization.gpu")) {
        r = CALL(nvmlDeviceGetUtilizationRates, d, &ut);
        num(r, "%.0f", ut.gpu, "%");
    } else if (!strcmp(f, "utilization.memory")) {
        r = CALL(nvmlDeviceGetUtilizationRates, d, &ut);
        num(r, "%.0f", ut.memory, "%");
    } else if (!strcmp(f, "memory.used")) {
        r = CALL(nvmlDeviceGetMemoryInfo, d, &m);
        num(r, "%.0f", m.used / 1048576., "MiB");
    } else if (!strcmp(f, "memory.free")) {
        r = CALL(nvmlDeviceGetMemoryInfo, d, &m);
        num(r, "%.0f", m.free / 1048576., "MiB");
    } else if (!strcmp(f, "memory.total")) {
        r = CALL(nvmlDeviceGetMemoryInfo, d, &m);
        num(r, "%.0f", m.total / 1048576., "MiB");
    } else if (!strcmp(f, "temperature.gpu")) {
        r = CALL(nvmlDeviceGetTemperature, d, 0, &u);
        num(r, "%.0f", u, "");
    } else if (!strcmp(f, "power.draw")) {
        r = CALL(nvmlDeviceGetPowerUsage, d, &u);
        num(r, "%.2f", u / 1e3, "W");
    } else if (!strcmp(f, "enforced.power.limit") || !strcmp(f, "power.limit")) {
        r = CALL(nvmlDeviceGetEnforcedPowerLimit, d, &u);
        num(r, "%.2f", u / 1e3, "W");
    } else if (!strcmp(f, "clocks.sm") || !strcmp(f, "clocks.gr")) {
        r = CALL(nvmlDeviceGetClockInfo, d, 1, &u);
        num(r, "%.0f", u, "MHz");
    } else if (!strcmp(f, "clocks.mem")) {
        r = CALL(nvmlDeviceGetClockInfo, d, 2, &u);
        num(r, "%.0f", u, "MHz");
    } else if (!strcmp(f, "fan.speed")) {
        r = CALL(nvmlDeviceGetFanSpeed, d, &u);
        num(r, "%.0f", u, "%");
    } else if (!strcmp(f, "ecc.errors.uncorrected.volatile.total")) {
        r = CALL(nvmlDeviceGetTotalEccErrors, d, 1, 0, &q);
        num(r, "%.0f", q, "");
    } else
        printf("[N/A]");
}
static void row(void *d, char *fields, fk_proc2 *p) {
    char b[2048], *sv;
    snprintf(b, sizeof b, "%s", fields);
    int first = 1;
    for (char *f = strtok_r(b, ",", &sv); f; f = strtok_r(0, ",", &sv)) {
        if (!first) printf(", ");
        first = 0;
        if (p && !strcmp(f, "pid"))
            printf("%u", p->pid);
        else if (p && (!strcmp(f, "process_name") || !strcmp(f, "name"))) {
            char s[1024];
            printf("%s", CALL(nvmlSystemGetProcessName, p->pid, s, 1024) ? "[Not Found]" : s);
        } else if (p && (!strcmp(f, "used_gpu_memory") || !strcmp(f, "used_memory")))
            num(p->used == ~0ULL, "%.0f", p->used / 1048576., "MiB");
        else
            field(d, f);
    }
    printf("\n");
}
int main(int argc, char **argv) {
    char *q = 0, *apps = 0;
    int list = 0, nohead = 0;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--query-gpu=", 12))
            q = argv[i] + 12;
        else if (!strncmp(argv[i], "--query-compute-apps=", 21))
            apps = argv[i] + 21;
        else if (!strcmp(argv[i], "-L"))
            list = 1;
        else if (!strncmp(argv[i], "--format=", 9)) {
            nohead = !!strstr(argv[i], "noheader");
            nounits = !!strstr(argv[i], "nounits");
        }
    }
    L = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    int r = L ? CALL(nvmlInit_v2) : 12;
    if (r == 18) {
        printf("Failed to initialize NVML: Driver/library version mismatch\n");
        return 18;
    }
    if (r) {
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
        return 9;
    }
    u32 n = 0;
    CALL(nvmlDeviceGetCount_v2, &n);
    if (!nohead && (q || apps)) printf("%s\n", q ? q : apps);
    for (u32 i = 0; i < n; i++) {
        void *d;
        if (CALL(nvmlDeviceGetHandleByIndex_v2, i, &d)) {
            printf("Unable to determine the device handle for GPU%u: GPU is lost.\n", i);
            return 15;
        }
        if (list) {
            char a[96], b[96];
            CALL(nvmlDeviceGetName, d, a, 96);
            CALL(nvmlDeviceGetUUID, d, b, 96);
            printf("GPU %u: %s (UUID: %s)\n", i, a, b);
        } else if (q)
            row(d, q, 0);
        else if (apps) {
            fk_proc2 p[64];
            u32 c = 64;
            if (!CALL(nvmlDeviceGetComputeRunningProcesses_v3, d, &c, p))
                for (u32 k = 0; k < c; k++) row(d, apps, &p[k]);
        }
    }
    CALL(nvmlShutdown);
    return 0;
}
