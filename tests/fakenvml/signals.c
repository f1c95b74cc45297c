/* Signals: a value over time. Counters are their integrals, so that all answers agree. */
#include "fakenvml.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
const char *const signal_names[NSIG] = {
    "util",        "memutil",  "mem_used_mib", "bar1_used_mib", "temp",          "mem_temp",
    "power_w",     "sm_clock", "mem_clock",    "video_clock",   "enc",           "dec",
    "jpg",         "ofa",      "pcie_tx_kbs",  "pcie_rx_kbs",   "nvlink_tx_kbs", "nvlink_rx_kbs",
    "sm_active",   "sm_occ",   "tensor",       "dram_bw",       "fp64",          "fp32",
    "fp16",        "integer",  "fan",          "throttle",      "ecc_corrected", "ecc_uncorrected",
    "pcie_replay", "pstate"};
const double signal_defaults[NSIG] = {50, 30, 40000, 4,   55,  60,  350, 1980, 2619, 1545, 0,
                                      0,  0,  0,     1e6, 5e5, 2e7, 2e7, 60,   40,   25,   35,
                                      0,  20, 30,    10,  -1,  0,   0,   0,    0,    0};
/* PATH,N: the N-th double (from 0) of a file that another program writes while we read. */
static struct pat parse_live(const char *v) {
    struct pat p = {.kind = P_LIVE};
    char f[512];
    snprintf(f, sizeof f, "%s", v);
    char *k = strrchr(f, ',');
    size_t n = k ? strtoul(k + 1, NULL, 10) : 0;
    if (k) *k = 0;
    int fd = open(f, O_RDONLY | O_CLOEXEC);
    void *m = fd < 0 ? MAP_FAILED
                     : mmap(NULL, (n + 1) * sizeof(double), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (m == MAP_FAILED)
        fprintf(stderr, "fakenvml: cannot map the live signal %s\n", f);
    else
        p.live = (const double *)m + n;
    return p;
}
struct pat parse_pat(const char *v) {
    struct pat p = {0};
    double x[4] = {0, 0, 0, 0.5};
    const char *c = strchr(v, ':');
    if (!c) {
        p.kind = P_CONST;
        p.a = atof(v);
        return p;
    }
    if (!strncmp(v, "live:", 5)) return parse_live(c + 1);
    if (!strncmp(v, "trace:", 6)) { /* trace:file,column   first column: seconds; repeats */
        char f[512];
        snprintf(f, sizeof f, "%s", c + 1);
        int col = 1;
        char *k = strrchr(f, ',');
        if (k) {
            *k = 0;
            col = atoi(k + 1);
        }
        FILE *h = fopen(f, "r");
        char line[4096];
        p.kind = P_TRACE;
        if (!h) {
            fprintf(stderr, "fakenvml: cannot open trace %s\n", f);
            return p;
        }
        while (fgets(line, sizeof line, h)) {
            char *e, *q = line;
            double t = strtod(line, &e);
            if (e == line) continue;
            for (int i = 0; i < col && q; i++) {
                q = strchr(q, ',');
                if (q) q++;
            }
            if (!q) continue;
            p.tt = realloc(p.tt, (p.n + 1) * sizeof(double));
            p.tv = realloc(p.tv, (p.n + 1) * sizeof(double));
            p.tt[p.n] = t;
            p.tv[p.n++] = atof(q);
        }
        fclose(h);
        return p;
    }
    int i = 0;
    for (const char *q = c + 1; q && *q && i < 4; i++) {
        x[i] = atof(q);
        q = strchr(q, ',');
        if (q) q++;
    }
    p.period = x[0] > 0 ? x[0] : 1;
    p.a = x[1];
    p.b = x[2];
    p.duty = x[3];
    p.kind = !strncmp(v, "square:", 7) ? P_SQUARE : !strncmp(v, "sine:", 5) ? P_SINE : P_RAMP;
    return p;
}
double ev(const struct pat *p, double t) {
    double f;
    switch (p->kind) {
    case P_SQUARE: f = fmod(t, p->period) / p->period; return f < p->duty ? p->b : p->a;
    case P_SINE: return p->a + (p->b - p->a) * 0.5 * (1 + sin(2 * M_PI * t / p->period));
    case P_RAMP: f = fmod(t, p->period) / p->period; return p->a + (p->b - p->a) * f;
    case P_LIVE: return p->live ? *p->live : 0;
    case P_TRACE: {
        if (!p->n) return 0;
        double span = p->tt[p->n - 1] - p->tt[0], x = p->tt[0] + (span > 0 ? fmod(t, span) : 0);
        int lo = 0, hi = p->n - 1;
        while (lo < hi) {
            int m = (lo + hi + 1) / 2;
            if (p->tt[m] <= x)
                lo = m;
            else
                hi = m - 1;
        }
        return p->tv[lo];
    }
    }
    return p->a;
}
double val(struct dev *d, int s) { return ev(&d->sig[s], tnow() + d->phase); }
double integral(struct dev *d, int s) { /* signal x seconds since start, small steps */
    pthread_mutex_lock(&mu);
    double t = tnow(), dt = t - d->integ_t[s];
    if (dt > 0) {
        int n = d->sig[s].kind == P_CONST ? 1 : (int)fmin(600, ceil(dt / 0.01));
        for (int i = 0; i < n; i++)
            d->integ[s] += ev(&d->sig[s], d->integ_t[s] + d->phase + dt * (i + .5) / n) * dt / n;
        d->integ_t[s] = t;
    }
    double r = d->integ[s];
    pthread_mutex_unlock(&mu);
    return r;
}
/* Nanoseconds spent so far under any of the throttle reasons in mask (bits of S_THROTTLE).
 * Under several at once the longest counts, as the driver's own counters overlap. */
u64 throttle_ns(struct dev *d, u64 mask) {
    pthread_mutex_lock(&mu);
    double t = tnow(), dt = t - d->bits_t;
    if (dt > 0) {
        int n = d->sig[S_THROTTLE].kind == P_CONST ? 1 : (int)fmin(600, ceil(dt / 0.01));
        for (int i = 0; i < n; i++) {
            u64 v = (u64)ev(&d->sig[S_THROTTLE], d->bits_t + d->phase + dt * (i + .5) / n);
            for (int b = 0; b < NTHROTTLE; b++)
                if (v >> b & 1) d->bits[b] += dt / n;
        }
        d->bits_t = t;
    }
    double most = 0;
    for (int b = 0; b < NTHROTTLE; b++)
        if (mask >> b & 1) most = fmax(most, d->bits[b]);
    pthread_mutex_unlock(&mu);
    return (u64)(most * 1e9);
}
