/* Processes on the GPUs, samples of the past, and events. */
#include "fakenvml.h"
/* Some drivers of the 535 series answered the third version with entries of 32 bytes, not 24:
 * `proc_stride=32` does so, within the caller's buffer. */
static void put_proc(void *o, u32 cap, u32 k, int ver, int stride, fk_proc2 p) {
    if (ver == 1) {
        ((fk_proc1 *)o)[k] = (fk_proc1){p.pid, p.used};
        return;
    }
    size_t at = (size_t)k * (stride ? (size_t)stride : sizeof p);
    if (at + sizeof p <= cap * sizeof p) memcpy((char *)o + at, &p, sizeof p);
}
static int procs(struct dev *d, u32 *n, void *o, char type, int ver) {
    if (!n) return INVALID_ARGUMENT;
    u32 k = 0, cap = *n;
    for (int i = 0; i < d->nproc; i++) k += d->procs[i].type == type;
    *n = k;
    if (!k) return OK;
    if (cap < k) return INSUFFICIENT_SIZE;
    if (!o) return INVALID_ARGUMENT;
    k = 0;
    for (int i = 0; i < d->nproc; i++) {
        struct proc *p = &d->procs[i];
        if (p->type != type) continue;
        u64 m = p->mem_mib < 0 ? ~0ULL : (u64)(p->mem_mib * MIB);
        put_proc(o, cap, k++, ver, ver == 3 ? d->proc_stride : 0, (fk_proc2){p->pid, m, ~0u, ~0u});
    }
    return OK;
}
#define PROCS(n, t, v)                                                                             \
    FN(n, struct dev *d, u32 *c, void *o) {                                                        \
        IN(n, d);                                                                                  \
        return procs(d, c, o, t, v);                                                               \
    }
PROCS(nvmlDeviceGetComputeRunningProcesses, 'C', 1)
PROCS(nvmlDeviceGetComputeRunningProcesses_v2, 'C', 2)
PROCS(nvmlDeviceGetComputeRunningProcesses_v3, 'C', 3)
PROCS(nvmlDeviceGetGraphicsRunningProcesses, 'G', 1)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', 2)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', 3)
PROCS(nvmlDeviceGetMPSComputeRunningProcesses, 'M', 1)
PROCS(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', 2)
PROCS(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', 3)
static u64 last_slot(void) { return wall_us() / 166667 * 166667; }
FN(nvmlDeviceGetProcessUtilization, struct dev *d, fk_procutil *o, u32 *n, u64 seen) {
    IN(nvmlDeviceGetProcessUtilization, d);
    ARG(n);
    u64 ts = last_slot();
    u32 cap = *n;
    if (!d->nproc || ts <= seen) {
        *n = 0;
        return NOT_FOUND;
    }
    u32 k = 0, all = (u32)d->nproc * (d->proc_old_sm > 0 ? 2 : 1);
    if (!o || cap < all) {
        *n = all;
        return INSUFFICIENT_SIZE;
    }
    for (int i = 0; i < d->nproc; i++) {
        if (d->proc_old_sm > 0) o[k++] = (fk_procutil){d->procs[i].pid, seen, d->proc_old_sm, 0, 0, 0};
        o[k++] = (fk_procutil){d->procs[i].pid, ts, d->procs[i].sm, d->procs[i].sm / 2, 0, 0};
    }
    *n = k;
    return OK;
}
FN(nvmlDeviceGetProcessesUtilizationInfo, struct dev *d, fk_procsutil_v1 *o) {
    IN(nvmlDeviceGetProcessesUtilizationInfo, d);
    ARG(o);
    u64 ts = last_slot();
    u32 cap = o->count;
    if (!d->nproc || ts <= o->last_seen) {
        o->count = 0;
        return NOT_FOUND;
    }
    o->count = d->nproc;
    if (!o->arr || cap < (u32)d->nproc) return INSUFFICIENT_SIZE;
    for (int i = 0; i < d->nproc; i++)
        o->arr[i] =
            (fk_procutil_v1){ts, d->procs[i].pid, d->procs[i].sm, d->procs[i].sm / 2, 0, 0, 0, 0};
    return OK;
}
FN(nvmlDeviceGetSamples, struct dev *d, u32 type, u64 seen, u32 *vt, u32 *n, fk_sample *o) {
    IN(nvmlDeviceGetSamples, d);
    ARG(vt && n);
    static const int M[] = {S_POWER, S_UTIL,   S_MEMUTIL, S_ENC, S_DEC,
                            S_SMCLK, S_MEMCLK, S_POWER,   S_JPG, S_OFA};
    if (type > 9) return INVALID_ARGUMENT;
    u64 step = type == 0 || type == 7 ? 20000 : 166667;
    u32 max = 120;
    *vt = 1;
    if (!o) {
        *n = max;
        return OK;
    }
    u64 now = wall_us(), last = now / step * step;
    if (last <= seen) {
        *n = 0;
        return NOT_FOUND;
    }
    u64 k = (last - seen) / step;
    if (k > max) k = max;
    if (k > *n) k = *n;
    double t = tnow() + d->phase;
    for (u64 i = 0; i < k; i++) {
        o[i].ts = last - (k - 1 - i) * step;
        double x = ev(&d->sig[M[type]], t - (now - o[i].ts) / 1e6);
        o[i].v.ull = 0;
        o[i].v.u = lround(type == 0 || type == 7 ? x * 1000 : x);
    }
    *n = k;
    return OK;
}
struct evset {
    int dummy;
    u64 mask;
    char fired[MAXDEV];
};
FN(nvmlEventSetCreate, struct evset **o) {
    INS(nvmlEventSetCreate);
    ARG(o);
    *o = calloc(1, sizeof **o);
    return OK;
}
FN(nvmlEventSetFree, struct evset *e) {
    INS(nvmlEventSetFree);
    free(e);
    return OK;
}
FN(nvmlDeviceRegisterEvents, struct dev *d, u64 t, struct evset *e) {
    IN(nvmlDeviceRegisterEvents, d);
    ARG(e);
    e->mask |= 1ULL << d->slot;
    return OK;
}
static int evwait(struct evset *e, fk_event *o, u32 ms) {
    if (!e || !o) return INVALID_ARGUMENT;
    for (u64 end = now_ns() + ms * 1000000ULL;;) {
        double t = tnow();
        for (int g = 0; g < ndev; g++)
            if (D[g].xid && t >= D[g].xid_t && (e->mask >> g & 1) && !e->fired[g]) {
                e->fired[g] = 1;
                *o = (fk_event){&D[g], 8, D[g].xid, ~0u, ~0u};
                return OK;
            }
        u64 n = now_ns();
        if (n >= end) return TIMEOUT;
        nap(end - n < 100000000ULL ? end - n : 100000000ULL);
    }
}
FN(nvmlEventSetWait_v2, struct evset *e, fk_event *o, u32 ms) {
    INS(nvmlEventSetWait_v2);
    return evwait(e, o, ms);
}
FN(nvmlEventSetWait, struct evset *e, fk_event *o, u32 ms) {
    INS(nvmlEventSetWait);
    return evwait(e, o, ms);
}
