/* Field values, and GPM: a GPM sample is a snapshot of the signals' integrals. */
#include "fakenvml.h"
/* Bytes since the driver loaded, as wide as the scenario says. */
static int pcie_counter(struct dev *d, fk_field *f) {
    if (!d->pcie_counters) return NOT_SUPPORTED;
    u64 n = d->pcie_counter_start + (u64)(integral(d, f->id == 197 ? S_PTX : S_PRX) * 1000);
    if (d->pcie_counter_bits < 64) n &= (1ULL << d->pcie_counter_bits) - 1;
    if (d->pcie_counter_bits == 32) {
        f->type = 1;
        f->v.u = (u32)n;
    } else
        f->v.ull = n;
    return OK;
}
static int field(struct dev *d, fk_field *f) {
    double tt = tnow();
    for (int i = 0; i < nfrule; i++)
        if (FR[i].gpu == d->slot && (u32)FR[i].field == f->id && within(&FR[i].when, 1, tt))
            return obey(FR[i].code);
    f->type = 3;
    f->v.ull = 0;
    int n = d->nvlinks;
    u32 sc = f->scope;
    switch (f->id) {
    case 1:
    case 2:
        f->type = 1;
        f->v.u = d->ecc_mode;
        return OK;
    case 3:
    case 5: f->v.ull = val(d, S_ECC_C); return OK;
    case 4:
    case 6: f->v.ull = val(d, S_ECC_U); return OK;
    case 29:
    case 30:
    case 31:
    case 92:
    case 93:
    case 142:
    case 143:
    case 144:
    case 145: f->type = 1; return OK;
    case 38:
    case 45:
    case 52:
    case 59: return n ? OK : NOT_SUPPORTED;
    case 74: f->v.ull = throttle_ns(d, 0x4); return OK;
    case 75: f->v.ull = throttle_ns(d, 0x60); return OK;
    case 269: f->v.ull = throttle_ns(d, 0x20); return OK;
    case 270: f->v.ull = throttle_ns(d, 0x40); return OK;
    case 271: f->v.ull = throttle_ns(d, 0x80); return OK;
    case 76:
    case 77:
    case 78:
    case 79:
    case 80:
    case 81: return OK;
    case 82:
        f->type = 1;
        f->v.u = lround(val(d, S_MEMTEMP));
        return OK;
    case 308:
        f->type = 1;
        f->v.u = lround(val(d, S_TEMP));
        return OK;
    case 83:
    case 191: f->v.ull = 1000000000ULL + (u64)(integral(d, S_POWER) * 1000); return OK;
    case 90:
        f->type = 1;
        f->v.u = n ? 26562 : 0;
        return n ? OK : NOT_SUPPORTED;
    case 91:
        f->type = 1;
        f->v.u = n;
        return OK;
    case 94:
        f->type = 1;
        f->v.u = val(d, S_REPLAY);
        return OK;
    case 95: f->type = 1; return OK;
    case 138:
    case 139:
    case 140:
    case 141: /* KiB, one link or all (scope UINT_MAX) */
        if (!n) return NOT_SUPPORTED;
        if (sc != ~0u && sc >= (u32)n) return INVALID_ARGUMENT;
        f->v.ull = (u64)(integral(d, f->id & 1 ? S_NRX : S_NTX) * (f->id >= 140 ? 1.1 : 1) /
                         (sc == ~0u ? 1 : n));
        return OK;
    case 202:
    case 204:
        if (!n) return NOT_SUPPORTED;
        f->v.ull = (u64)(integral(d, f->id == 204 ? S_NRX : S_NTX) * 1024 / (sc == ~0u ? 1 : n));
        return OK;
    case 185:
    case 186:
        f->type = 1;
        f->v.u = val(d, S_POWER) * 1000;
        return OK;
    case 187:
        f->type = 1;
        f->v.u = 200000;
        return OK;
    case 188:
    case 189:
    case 190:
    case 192:
        f->type = 1;
        f->v.u = d->power_limit_w * 1000;
        return OK;
    case 197:
    case 198: return pcie_counter(d, f);
    }
    if (f->id >= 173 && f->id <= 183) return OK;
    return NOT_SUPPORTED;
}
FN(nvmlDeviceGetFieldValues, struct dev *d, int n, fk_field *f) {
    IN(nvmlDeviceGetFieldValues, d);
    ARG(f && n > 0);
    for (int i = 0; i < n; i++) {
        f[i].ts = wall_us();
        f[i].latency = 0;
        f[i].ret = field(d, &f[i]);
    }
    return OK;
}
struct gpm {
    u64 magic;
    double t, v[NSIG];
};
FN(nvmlGpmQueryDeviceSupport, struct dev *d, fk_gpm_support *o) {
    IN(nvmlGpmQueryDeviceSupport, d);
    ARG(o);
    o->supported = d->gpm;
    return OK;
}
FN(nvmlGpmSampleAlloc, struct gpm **o) {
    INS(nvmlGpmSampleAlloc);
    ARG(o);
    *o = calloc(1, sizeof **o);
    (*o)->magic = MAGIC;
    return OK;
}
FN(nvmlGpmSampleFree, struct gpm *s) {
    INS(nvmlGpmSampleFree);
    ARG(s && s->magic == MAGIC);
    s->magic = 0;
    free(s);
    return OK;
}
static int gpm_sample(struct dev *d, struct gpm *s) {
    static const int G[] = {S_UTIL, S_SMACT, S_OCC, S_INT, S_TENSOR, S_DRAM, S_FP64,
                            S_FP32, S_FP16,  S_PTX, S_PRX, S_NTX,    S_NRX};
    s->t = tnow();
    for (unsigned i = 0; i < sizeof G / sizeof *G; i++) s->v[G[i]] = integral(d, G[i]);
    return OK;
}
FN(nvmlGpmSampleGet, struct dev *d, struct gpm *s) {
    IN(nvmlGpmSampleGet, d);
    ARG(s && s->magic == MAGIC);
    if (!d->gpm) return NOT_SUPPORTED;
    return gpm_sample(d, s);
}
FN(nvmlGpmMigSampleGet, struct dev *d, u32 gi, struct gpm *s) {
    IN(nvmlGpmMigSampleGet, d);
    ARG(s && s->magic == MAGIC);
    if (!d->gpm || d->mig != 1) return NOT_SUPPORTED;
    for (int i = 0; i < d->ninstances; i++)
        if ((u32)d->instances[i].gi == gi) return gpm_sample(&M[d->slot][i], s);
    return INVALID_ARGUMENT;
}
FN(nvmlGpmMetricsGet, fk_gpm_get *g) {
    INS(nvmlGpmMetricsGet);
    ARG(g && g->s1 && g->s2);
    struct gpm *a = g->s1, *b = g->s2;
    if ((g->version & 0xff) != 1) return ARGUMENT_VERSION_MISMATCH;
    double dt = b->t - a->t;
    for (u32 i = 0; i < g->n; i++) {
        fk_gpm_metric *m = &g->m[i];
        double x = 0, k = 1;
        int s = -1;
        switch (m->id) {
        case 1: s = S_UTIL; break;
        case 2: s = S_SMACT; break;
        case 3: s = S_OCC; break;
        case 4: s = S_INT; break;
        case 5: s = S_TENSOR; break;
        case 7: s = S_TENSOR; break;
        case 10: s = S_DRAM; break;
        case 11: s = S_FP64; break;
        case 12: s = S_FP32; break;
        case 13: s = S_FP16; break;
        case 20:
            s = S_PTX;
            k = 1 / 1048.576;
            break;
        case 21:
            s = S_PRX;
            k = 1 / 1048.576;
            break;
        case 60:
            s = S_NRX;
            k = 1 / 1024.;
            break;
        case 61:
            s = S_NTX;
            k = 1 / 1024.;
            break;
        case 6:
        case 8:
        case 9:
        case 30:
        case 40:
        case 50: s = -2; break;
        }
        m->ret = s == -1 ? NOT_SUPPORTED : dt <= 0 ? NO_DATA : OK;
        if (s >= 0 && dt > 0) x = (b->v[s] - a->v[s]) / dt * k;
        m->value = x;
        m->info.s = m->info.l = m->info.u = (char *)"";
    }
    return OK;
}
