/* The library, the list of GPUs, their identity. */
#include "fakenvml.h"
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
static const struct {
    int code;
    const char *text;
} ERRS[] = {{0, "Success"},
            {1, "Uninitialized"},
            {2, "Invalid Argument"},
            {3, "Not Supported"},
            {4, "Insufficient Permissions"},
            {6, "Not Found"},
            {7, "Insufficient Size"},
            {9, "Driver Not Loaded"},
            {10, "Timeout"},
            {11, "Interrupt Request Issue"},
            {12, "NVML Shared Library Not Found"},
            {13, "Function Not Found"},
            {15, "GPU is lost"},
            {16, "GPU requires restart"},
            {17, "The operating system has blocked the request."},
            {18, "Driver/library version mismatch"},
            {19, "In use by another client"},
            {20, "Insufficient Memory"},
            {21, "No data"},
            {23, "Insufficient Resources"},
            {25, "Argument version mismatch"},
            {27, "Not ready"},
            {28, "GPU not found"},
            {999, "Unknown Error"}};
static int do_init(struct fnstat *s) {
    pthread_mutex_lock(&mu);
    if (!refs || scenario_changed()) scenario_load();
    pthread_mutex_unlock(&mu);
    int r = enter(s, 0, 0);
    if (!r) __atomic_add_fetch(&refs, 1, __ATOMIC_RELAXED);
    return r;
}
FN(nvmlInit_v2, void) { return do_init(&st_nvmlInit_v2); }
FN(nvmlInit, void) { return do_init(&st_nvmlInit); }
FN(nvmlInitWithFlags, u32 fl) { return do_init(&st_nvmlInitWithFlags); }
FN(nvmlShutdown, void) {
    INS(nvmlShutdown);
    refs--;
    return OK;
}
STAT(nvmlErrorString);
EXPORT const char *nvmlErrorString(int e) {
    enter(&st_nvmlErrorString, 0, 0);
    for (unsigned i = 0; i < sizeof ERRS / sizeof *ERRS; i++)
        if (ERRS[i].code == e) return ERRS[i].text;
    return "Unknown Error";
}
FN(nvmlSystemGetDriverVersion, char *o, u32 n) {
    INS(nvmlSystemGetDriverVersion);
    return put(o, n, driver_ver);
}
FN(nvmlSystemGetNVMLVersion, char *o, u32 n) {
    INS(nvmlSystemGetNVMLVersion);
    return put(o, n, nvml_ver);
}
FN(nvmlSystemGetCudaDriverVersion, int *o) {
    INS(nvmlSystemGetCudaDriverVersion);
    ARG(o);
    *o = cuda_ver;
    return OK;
}
FN(nvmlSystemGetCudaDriverVersion_v2, int *o) {
    INS(nvmlSystemGetCudaDriverVersion_v2);
    ARG(o);
    *o = cuda_ver;
    return OK;
}
FN(nvmlSystemGetProcessName, u32 pid, char *o, u32 n) {
    INS(nvmlSystemGetProcessName);
    ARG(o);
    for (int i = 0; i < npn; i++)
        if (PN[i].pid == pid) {
            snprintf(o, n, "%s", PN[i].name);
            return OK;
        }
    char p[64], b[1024] = "";
    snprintf(p, sizeof p, "/proc/%u/cmdline", pid);
    int fd = open(p, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NOT_FOUND;
    ssize_t k = read(fd, b, sizeof b - 1);
    close(fd);
    if (k <= 0) return NOT_FOUND;
    snprintf(o, n, "%s", b);
    return OK;
}
FN(nvmlDeviceGetCount_v2, u32 *o) {
    INS(nvmlDeviceGetCount_v2);
    ARG(o);
    {
        struct dev *all[MAXDEV];
        *o = enumerate(all);
    }
    return OK;
}
FN(nvmlDeviceGetCount, u32 *o) {
    INS(nvmlDeviceGetCount);
    ARG(o);
    {
        struct dev *all[MAXDEV];
        *o = enumerate(all);
    }
    return OK;
}
static int by_index(struct fnstat *s, u32 i, struct dev **o) {
    struct dev *all[MAXDEV];
    struct dev *d = i < (u32)enumerate(all) ? handle(all[i]) : 0;
    int r = enter(s, d, 1);
    if (r) return r;
    if (!o || !d) return INVALID_ARGUMENT;
    *o = d;
    return OK;
}
FN(nvmlDeviceGetHandleByIndex_v2, u32 i, struct dev **o) {
    return by_index(&st_nvmlDeviceGetHandleByIndex_v2, i, o);
}
FN(nvmlDeviceGetHandleByIndex, u32 i, struct dev **o) {
    return by_index(&st_nvmlDeviceGetHandleByIndex, i, o);
}
static int lost(const struct dev *d) {
    return within(d->lost, d->nlost, tnow()) ? GPU_IS_LOST : OK;
}
static int by_text(const char *text, size_t member, struct dev **o) {
    struct dev *all[MAXDEV];
    int n = enumerate(all);
    for (int i = 0; i < n; i++)
        if (!strcmp((const char *)all[i] + member, text)) {
            *o = handle(all[i]);
            return lost(all[i]);
        }
    return NOT_FOUND;
}
FN(nvmlDeviceGetHandleByUUID, const char *u, struct dev **o) {
    INS(nvmlDeviceGetHandleByUUID);
    ARG(u && o);
    return by_text(u, offsetof(struct dev, uuid), o);
}
FN(nvmlDeviceGetHandleBySerial, const char *u, struct dev **o) {
    INS(nvmlDeviceGetHandleBySerial);
    ARG(u && o);
    return by_text(u, offsetof(struct dev, serial), o);
}
FN(nvmlDeviceGetHandleByPciBusId_v2, const char *u, struct dev **o) {
    INS(nvmlDeviceGetHandleByPciBusId_v2);
    ARG(u && o);
    u32 dom, bus;
    if (sscanf(u, "%x:%x:", &dom, &bus) == 2) {
        struct dev *all[MAXDEV];
        int n = enumerate(all);
        for (int i = 0; i < n; i++)
            if (bus == 0x10u + all[i]->slot) {
                *o = handle(all[i]);
                return lost(all[i]);
            }
    }
    return NOT_FOUND;
}
GETSTR(nvmlDeviceGetName, d->name)
GETSTR(nvmlDeviceGetUUID, d->uuid)
GETSTR(nvmlDeviceGetSerial, d->serial)
GETSTR(nvmlDeviceGetVbiosVersion, "96.00.89.00.01")
GETSTR(nvmlDeviceGetBoardPartNumber, "692-2G520-0200-000")
GETSTR(nvmlDeviceGetInforomImageVersion, "G520.0200.00.05")
GETU(nvmlDeviceGetIndex, device_index(d))
GETU(nvmlDeviceGetMinorNumber, d->slot)
GETU(nvmlDeviceGetBoardId, 0x1000 + d->slot)
GETU(nvmlDeviceGetModuleId, d->slot + 1)
GETU(nvmlDeviceGetMultiGpuBoard, 0)
void fill_pci(struct dev *d, fk_pci *p) {
    memset(p, 0, sizeof *p);
    p->bus = 0x10 + d->slot;
    p->pci_device_id = d->pci_device_id;
    p->pci_subsystem_id = d->pci_subsystem_id;
    snprintf(p->bus_id_legacy, 16, "0000:%02X:00.0", p->bus);
    snprintf(p->bus_id, 32, "00000000:%02X:00.0", p->bus);
}
FN(nvmlDeviceGetPciInfo_v3, struct dev *d, fk_pci *o) {
    IN(nvmlDeviceGetPciInfo_v3, d);
    ARG(o);
    fill_pci(d, o);
    return OK;
}
FN(nvmlDeviceGetPciInfo_v2, struct dev *d, fk_pci *o) {
    IN(nvmlDeviceGetPciInfo_v2, d);
    ARG(o);
    fill_pci(d, o);
    return OK;
}
FN(nvmlDeviceGetPciInfoExt, struct dev *d, fk_pci_ext *o) {
    IN(nvmlDeviceGetPciInfoExt, d);
    ARG(o);
    fk_pci p;
    fill_pci(d, &p);
    o->domain = 0;
    o->bus = p.bus;
    o->device = 0;
    o->pci_device_id = p.pci_device_id;
    o->pci_subsystem_id = p.pci_subsystem_id;
    o->base_class = 3;
    o->sub_class = 2;
    memcpy(o->bus_id, p.bus_id, 32);
    return OK;
}
