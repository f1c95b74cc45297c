/* The scenario file: see README.md for its keys. */
#include "fakenvml.h"
#include <sys/stat.h>
struct dev D[MAXDEV], M[MAXDEV][MAXMIG];
int ndev, cuda_ver, nrule, nfrule, npn, lat_spin;
char driver_ver[80], nvml_ver[80];
u64 pcie_ns;
struct rule R[512];
struct frule FR[256];
struct pname PN[64];
static const struct {
    const char *name;
    int code;
} CODES[] = {{"HANG", HANG},
             {"CRASH", CRASH},
             {"SUCCESS", OK},
             {"UNINITIALIZED", 1},
             {"INVALID_ARGUMENT", 2},
             {"NOT_SUPPORTED", 3},
             {"NO_PERMISSION", 4},
             {"NOT_FOUND", 6},
             {"INSUFFICIENT_SIZE", 7},
             {"DRIVER_NOT_LOADED", 9},
             {"TIMEOUT", 10},
             {"IRQ_ISSUE", 11},
             {"LIBRARY_NOT_FOUND", 12},
             {"FUNCTION_NOT_FOUND", 13},
             {"CORRUPTED_INFOROM", 14},
             {"GPU_IS_LOST", 15},
             {"RESET_REQUIRED", 16},
             {"OPERATING_SYSTEM", 17},
             {"LIB_RM_VERSION_MISMATCH", 18},
             {"IN_USE", 19},
             {"MEMORY", 20},
             {"NO_DATA", 21},
             {"INSUFFICIENT_RESOURCES", 23},
             {"ARGUMENT_VERSION_MISMATCH", 25},
             {"DEPRECATED", 26},
             {"NOT_READY", 27},
             {"GPU_NOT_FOUND", 28},
             {"UNKNOWN", 999}};
static int err_code(const char *s) {
    if (*s >= '0' && *s <= '9') return atoi(s);
    for (unsigned i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (!strcmp(CODES[i].name, s)) return CODES[i].code;
    fprintf(stderr, "fakenvml: unknown error name %s\n", s);
    return UNKNOWN;
}
int within(const struct span *s, int n, double t) {
    for (int i = 0; i < n; i++)
        if (t >= s[i].t0 && t < s[i].t1) return 1;
    return 0;
}
static struct span between(const char *v) { /* FROM or FROM-TO */
    struct span s = {atof(v), 1e300};
    const char *b = strchr(v, '-');
    if (b) s.t1 = atof(b + 1);
    return s;
}
static struct span window(char *v) { /* ERR@FROM or ERR@FROM-TO: cuts v at the @ */
    char *a = strchr(v, '@');
    if (!a) return (struct span){-1, 1e300};
    *a = 0;
    return between(a + 1);
}
static void unescape(char *o, size_t n, const char *s) {
    size_t k = 0;
    unsigned h;
    while (*s && k + 1 < n) {
        if (s[0] == '\\' && s[1] == 'x' && sscanf(s + 2, "%2x", &h) == 1) {
            o[k++] = h;
            s += 4;
        } else
            o[k++] = *s++;
    }
    o[k] = 0;
}
struct order {
    struct span when;
    int n, slot[MAXDEV];
};
static struct order orders[MAXSPAN];
static int norder;
int enumerate(struct dev **out) {
    double t = tnow();
    const struct order *o = 0;
    int n = 0;
    for (int i = 0; i < norder; i++)
        if (within(&orders[i].when, 1, t)) o = &orders[i];
    for (int i = 0; i < (o ? o->n : ndev); i++) {
        int g = o ? o->slot[i] : i;
        if (g >= 0 && g < ndev && !within(D[g].gone, D[g].ngone, t)) out[n++] = &D[g];
    }
    return n;
}
int device_index(const struct dev *d) {
    struct dev *all[MAXDEV];
    int n = enumerate(all);
    for (int i = 0; i < n; i++)
        if (all[i] == d || (!d->is_mig && all[i]->slot == d->slot)) return i;
    return -1;
}
/* A card that was lost and is back gets another handle: the one from before stays lost for good. */
static struct dev *handles[MAXDEV][MAXSPAN + 1];
int returns(const struct dev *d) {
    double t = tnow();
    int n = 0;
    for (int i = 0; i < d->nlost; i++) n += d->lost[i].t1 <= t;
    return n;
}
struct dev *handle(struct dev *d) {
    int n = d->is_mig ? 0 : returns(d);
    if (!n) return d;
    struct dev **again = &handles[d->slot][n];
    if (!*again && (*again = malloc(sizeof *d))) {
        **again = *d;
        (*again)->returns = n;
    }
    return *again;
}
/* A file that has changed stands for a driver that was replaced: read again at the next nvmlInit.
 */
static struct stat stamp;
static void read_stamp(const char *path) {
    memset(&stamp, 0, sizeof stamp);
    if (path && *path) stat(path, &stamp);
}
int scenario_changed(void) {
    struct stat now = {0};
    const char *path = getenv("FAKENVML_SCENARIO");
    if (path && *path) stat(path, &now);
    return now.st_ino != stamp.st_ino || now.st_size != stamp.st_size ||
           now.st_mtim.tv_sec != stamp.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != stamp.st_mtim.tv_nsec;
}
static void mig_devices(int g) {
    struct dev *p = &D[g];
    for (int i = 0; i < p->ninstances; i++) {
        struct dev *m = &M[g][i];
        const struct mig *s = &p->instances[i];
        *m = *p;
        m->is_mig = 1;
        m->parent = p;
        m->mem_total_mib = s->mem_mib;
        m->mig = -1;
        m->ninstances = 0;
        m->procs = &p->instances[i].proc;
        m->nproc = s->proc.pid ? 1 : 0;
        m->reserved_mib = 0;
        if (s->used_mib >= 0) m->sig[S_MEM] = (struct pat){.kind = P_CONST, .a = s->used_mib};
        if (s->sm_active >= 0) m->sig[S_SMACT] = (struct pat){.kind = P_CONST, .a = s->sm_active};
        snprintf(m->name, sizeof m->name, "%.56s MIG %.31s", p->name, s->profile);
        snprintf(m->uuid, sizeof m->uuid, "MIG-fa4e%04x-%04x-5000-8000-%012x", g, i,
                 s->gi * 16 + s->ci);
    }
}
static void dev_key(int g, const char *k, const char *val) {
    struct dev *d = &D[g];
    char v[1024];
    snprintf(v, sizeof v, "%s", val);
    for (int i = 0; i < NSIG; i++)
        if (!strcmp(k, signal_names[i])) {
            d->sig[i] = parse_pat(v);
            return;
        }
#define NUM(n)                                                                                     \
    if (!strcmp(k, #n)) {                                                                          \
        d->n = atof(v);                                                                            \
        return;                                                                                    \
    }
    NUM(mem_total_mib)
    NUM(bar1_total_mib) NUM(power_limit_w) NUM(phase) NUM(nvlinks) NUM(cores) NUM(cc_major)
        NUM(cc_minor) NUM(arch) NUM(brand) NUM(mig) NUM(ecc_mode) NUM(gen) NUM(width) NUM(max_gen)
            NUM(max_width) NUM(persistence) NUM(gpm) NUM(reserved_mib) NUM(pcie_counters)
                NUM(pcie_counter_bits) NUM(proc_stride) NUM(proc_old_sm) NUM(virtualization)
                    NUM(card_max_gen) if (!strcmp(k, "pcie_counter_start")) {
        d->pcie_counter_start = strtoull(v, 0, 0);
        return;
    }
    if (!strcmp(k, "pci_device_id")) {
        d->pci_device_id = strtoul(v, 0, 0);
        return;
    }
    if (!strcmp(k, "pci_subsystem_id")) {
        d->pci_subsystem_id = strtoul(v, 0, 0);
        return;
    }
    if (!strcmp(k, "lost") || !strcmp(k, "lost_after")) {
        if (d->nlost < MAXSPAN) d->lost[d->nlost++] = between(v);
        return;
    }
    if (!strcmp(k, "gone")) {
        if (d->ngone < MAXSPAN) d->gone[d->ngone++] = between(v);
        return;
    }
    if (!strcmp(k, "mig_instance")) { /* GI,CI,PROFILE,MiB[,used MiB,sm_active %[,PID,MiB]] */
        if (d->ninstances < MAXMIG) {
            struct mig *m = &d->instances[d->ninstances++];
            m->used_mib = m->sm_active = -1;
            m->proc = (struct proc){0, 'C', 0, 0};
            sscanf(v, "%d,%d,%31[^,],%lf,%lf,%lf,%u,%lf", &m->gi, &m->ci, m->profile, &m->mem_mib,
                   &m->used_mib, &m->sm_active, &m->proc.pid, &m->proc.mem_mib);
        }
        return;
    }
    if (!strcmp(k, "name")) {
        unescape(d->name, sizeof d->name, v);
        return;
    }
    if (!strcmp(k, "uuid")) {
        snprintf(d->uuid, sizeof d->uuid, "%.95s", v);
        return;
    }
    if (!strcmp(k, "serial")) {
        snprintf(d->serial, sizeof d->serial, "%.31s", v);
        return;
    }
    if (!strcmp(k, "xid")) {
        sscanf(v, "%d@%lf", &d->xid, &d->xid_t);
        return;
    }
    if (!strcmp(k, "proc")) { /* pid,type,memMiB,sm% */
        if (d->nproc < MAXPROC) {
            d->procs = realloc(d->procs, (d->nproc + 1) * sizeof *d->procs);
            struct proc *p = &d->procs[d->nproc++];
            *p = (struct proc){0, 'C', 0, 0};
            sscanf(v, "%u,%c,%lf,%lf", &p->pid, &p->type, &p->mem_mib, &p->sm);
        }
        return;
    }
    if (!strncmp(k, "field.", 6) && nfrule < 256) {
        struct frule *r = &FR[nfrule++];
        r->gpu = g;
        r->field = atoi(k + 6);
        r->when = window(v);
        r->code = err_code(v);
        return;
    }
    if (!strncmp(k, "nvml", 4) && nrule < 512) {
        struct rule *r = &R[nrule++];
        snprintf(r->fn, sizeof r->fn, "%s", k);
        r->gpu = g;
        r->when = window(v);
        r->code = err_code(v);
        return;
    }
    fprintf(stderr, "fakenvml: unknown key gpu%d.%s\n", g, k);
}
static void defaults(int g) {
    struct dev *d = &D[g];
    free(d->procs);
    memset(d, 0, sizeof *d);
    d->magic = MAGIC;
    d->slot = g;
    strcpy(d->name, "NVIDIA H100 80GB HBM3");
    snprintf(d->uuid, sizeof d->uuid, "GPU-fa4e%04x-0000-4000-8000-%012x", g, g + 1);
    snprintf(d->serial, sizeof d->serial, "16530230%05d", g);
    d->mem_total_mib = 81559;
    d->bar1_total_mib = 131072;
    d->power_limit_w = 700;
    d->reserved_mib = 600;
    d->pcie_counters = 1;
    d->pcie_counter_bits = 64;
    d->pci_device_id = 0x233010de;
    d->pci_subsystem_id = 0x16c110de;
    d->mig = -1;
    d->nvlinks = 18;
    d->cores = 16896;
    d->cc_major = 9;
    d->arch = 9;
    d->brand = 14;
    d->ecc_mode = 1;
    d->gen = d->max_gen = d->card_max_gen = 5;
    d->width = d->max_width = 16;
    d->persistence = 1;
    d->gpm = 1;
    for (int i = 0; i < NSIG; i++) {
        d->sig[i].kind = P_CONST;
        d->sig[i].a = signal_defaults[i];
    }
}
void scenario_load(void) {
    const char *path = getenv("FAKENVML_SCENARIO");
    FILE *f = path && *path ? fopen(path, "r") : NULL;
    ndev = 1;
    nrule = nfrule = npn = norder = 0;
    pcie_ns = 20000000;
    lat_spin = 0;
    cuda_ver = 12040;
    u64 lat_ns = 0;
    const char *base = "start";
    char base_text[600];
    read_stamp(path);
    strcpy(driver_ver, "550.90.07");
    strcpy(nvml_ver, "12.550.90.07");
    memset(handles, 0, sizeof handles);
    for (int g = 0; g < MAXDEV; g++) defaults(g);
    for (struct fnstat *s = __start_fkst; s < __stop_fkst; s++) {
        s->nrules = 0;
        s->lat = 0;
    }
    if (path && *path && !f) fprintf(stderr, "fakenvml: cannot open scenario\n");
    char line[1200];
    struct {
        char fn[64];
        u64 ns;
    } L[64];
    int nl = 0;
    int lat_set = 0;
    while (f && fgets(line, sizeof line, f)) {
        char *e = line + strcspn(line, "\r\n");
        *e = 0;
        char *k = line + strspn(line, " \t");
        if (!*k || *k == '#') continue;
        char *v = strchr(k, '=');
        if (!v) continue;
        *v++ = 0;
        v += strspn(v, " \t");
        for (e = k + strlen(k); e > k && (e[-1] == ' ' || e[-1] == '\t');) *--e = 0;
        char *c = strstr(v, " #");
        if (c) *c = 0;
        for (e = v + strlen(v); e > v && (e[-1] == ' ' || e[-1] == '\t');) *--e = 0;
        int g, n = 0;
        if (!strcmp(k, "gpus"))
            ndev = atoi(v) > MAXDEV ? MAXDEV : atoi(v);
        else if (!strcmp(k, "driver_version"))
            unescape(driver_ver, sizeof driver_ver, v);
        else if (!strcmp(k, "nvml_version"))
            unescape(nvml_ver, sizeof nvml_ver, v);
        else if (!strcmp(k, "cuda_driver"))
            cuda_ver = atoi(v);
        else if (!strcmp(k, "pcie_sleep_ms"))
            pcie_ns = atof(v) * 1e6;
        else if (!strcmp(k, "latency_us")) {
            lat_ns = atof(v) * 1e3;
            lat_set = 1;
        } else if (!strcmp(k, "latency_mode"))
            lat_spin = !strcmp(v, "spin");
        else if (!strcmp(k, "time_base")) {
            snprintf(base_text, sizeof base_text, "%s", v);
            base = base_text;
        } else if (!strcmp(k, "order") && norder < MAXSPAN) {
            struct order *o = &orders[norder++];
            o->when = window(v);
            o->n = 0;
            for (char *q = v; q && *q && o->n < MAXDEV;) {
                o->slot[o->n++] = atoi(q);
                q = strchr(q, ',');
                if (q) q++;
            }
        } else if (!strncmp(k, "proc_name.", 10) && npn < 64) {
            PN[npn].pid = atoi(k + 10);
            unescape(PN[npn++].name, 256, v);
        } else if (!strncmp(k, "gpu*.", 5))
            for (g = 0; g < MAXDEV; g++) dev_key(g, k + 5, v);
        else if (sscanf(k, "gpu%d.%n", &g, &n) == 1 && n && g >= 0 && g < MAXDEV)
            dev_key(g, k + n, v);
        else if (!strncmp(k, "nvml", 4) && (c = strstr(k, ".latency_us"))) {
            *c = 0;
            if (nl < 64) {
                snprintf(L[nl].fn, 64, "%s", k);
                L[nl++].ns = atof(v) * 1e3;
            }
        } else if (!strncmp(k, "nvml", 4) && nrule < 512) {
            struct rule *r = &R[nrule++];
            snprintf(r->fn, sizeof r->fn, "%s", k);
            r->gpu = -1;
            r->when = window(v);
            r->code = err_code(v);
        } else
            fprintf(stderr, "fakenvml: unknown key %s\n", k);
    }
    if (f) fclose(f);
    for (struct fnstat *s = __start_fkst; s < __stop_fkst; s++) {
        if (lat_set) s->lat = lat_ns;
        for (int i = 0; i < nl; i++)
            if (!strcmp(L[i].fn, s->name)) s->lat = L[i].ns;
        for (int i = 0; i < nrule; i++) s->nrules += !strcmp(R[i].fn, s->name);
    }
    clock_base(base);
    for (int g = 0; g < ndev; g++) mig_devices(g);
    double t =
        tnow() < 1e9 ? 0 : tnow(); /* counters run from the clock's start, whoever asks first */
    for (int g = 0; g < ndev; g++)
        for (int i = 0; i < NSIG; i++) {
            D[g].integ_t[i] = D[g].bits_t = t;
            for (int k = 0; k < D[g].ninstances; k++) M[g][k].integ_t[i] = t;
        }
}
