/* Memory, utilisation, heat, power, clocks, PCIe and NVLink. */
#include "fakenvml.h"
static u64 used_b(struct dev *d) {
    double m = val(d, S_MEM);
    if (m > d->mem_total_mib) m = d->mem_total_mib;
    return (u64)(m * MIB);
}
FN(nvmlDeviceGetMemoryInfo, struct dev *d, fk_mem *o) {
    IN(nvmlDeviceGetMemoryInfo, d);
    ARG(o);
    o->total = d->mem_total_mib * MIB;
    o->used = used_b(d) + d->reserved_mib * MIB; /* v1 counts what the driver keeps */
    if (o->used > o->total) o->used = o->total;
    o->free = o->total - o->used;
    return OK;
}
FN(nvmlDeviceGetMemoryInfo_v2, struct dev *d, fk_mem2 *o) {
    IN(nvmlDeviceGetMemoryInfo_v2, d);
    ARG(o);
    if (o->version != (sizeof(fk_mem2) | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    o->total = d->mem_total_mib * MIB;
    o->reserved = d->reserved_mib * MIB;
    o->used = used_b(d);
    o->free = o->total > o->used + o->reserved ? o->total - o->used - o->reserved : 0;
    return OK;
}
FN(nvmlDeviceGetBAR1MemoryInfo, struct dev *d, fk_mem *o) {
    IN(nvmlDeviceGetBAR1MemoryInfo, d);
    ARG(o);
    o->total = d->bar1_total_mib * MIB;
    o->used = val(d, S_BAR1) * MIB;
    o->free = o->total - o->used;
    return OK;
}
FN(nvmlDeviceGetUtilizationRates, struct dev *d, fk_util *o) {
    IN(nvmlDeviceGetUtilizationRates, d);
    ARG(o);
    if (d->mig == 1 || d->is_mig) return NOT_SUPPORTED;
    o->gpu = lround(val(d, S_UTIL));
    o->memory = lround(val(d, S_MEMUTIL));
    return OK;
}
#define CODEC(n, s)                                                                                \
    FN(n, struct dev *d, u32 *u, u32 *p) {                                                         \
        IN(n, d);                                                                                  \
        ARG(u && p);                                                                               \
        *u = lround(val(d, s));                                                                    \
        *p = 167000;                                                                               \
        return OK;                                                                                 \
    }
CODEC(nvmlDeviceGetEncoderUtilization, S_ENC)
CODEC(nvmlDeviceGetDecoderUtilization, S_DEC)
CODEC(nvmlDeviceGetJpgUtilization, S_JPG)
CODEC(nvmlDeviceGetOfaUtilization, S_OFA)
FN(nvmlDeviceGetTemperature, struct dev *d, int s, u32 *o) {
    IN(nvmlDeviceGetTemperature, d);
    ARG(o && s == 0);
    *o = lround(val(d, S_TEMP));
    return OK;
}
FN(nvmlDeviceGetTemperatureV, struct dev *d, fk_temp_v1 *o) {
    IN(nvmlDeviceGetTemperatureV, d);
    ARG(o);
    if (o->version != (sizeof *o | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
    o->temp = lround(val(d, S_TEMP));
    return OK;
}
FN(nvmlDeviceGetTemperatureThreshold, struct dev *d, u32 t, u32 *o) {
    IN(nvmlDeviceGetTemperatureThreshold, d);
    ARG(o);
    static const u32 T[] = {92, 89, 95, 87};
    if (t > 3) return NOT_SUPPORTED;
    *o = T[t];
    return OK;
}
GETU(nvmlDeviceGetPowerUsage, val(d, S_POWER) * 1000)
GETU(nvmlDeviceGetEnforcedPowerLimit, d->power_limit_w * 1000)
GETU(nvmlDeviceGetPowerManagementLimit, d->power_limit_w * 1000)
GETU(nvmlDeviceGetPowerManagementDefaultLimit, d->power_limit_w * 1000)
GETU(nvmlDeviceGetPowerManagementMode, 1)
FN(nvmlDeviceGetPowerManagementLimitConstraints, struct dev *d, u32 *a, u32 *b) {
    IN(nvmlDeviceGetPowerManagementLimitConstraints, d);
    ARG(a && b);
    *a = 200000;
    *b = d->power_limit_w * 1000;
    return OK;
}
FN(nvmlDeviceGetTotalEnergyConsumption, struct dev *d, u64 *o) {
    IN(nvmlDeviceGetTotalEnergyConsumption, d);
    ARG(o);
    *o = 1000000000ULL + (u64)(integral(d, S_POWER) * 1000);
    return OK;
}
static int clk(struct dev *d, u32 t, u32 *o, int max) {
    if (!o || t > 3) return INVALID_ARGUMENT;
    static const u32 M[] = {1980, 1980, 2619, 1545};
    *o = max ? M[t] : lround(val(d, t == 2 ? S_MEMCLK : t == 3 ? S_VIDCLK : S_SMCLK));
    return OK;
}
FN(nvmlDeviceGetClockInfo, struct dev *d, u32 t, u32 *o) {
    IN(nvmlDeviceGetClockInfo, d);
    return clk(d, t, o, 0);
}
FN(nvmlDeviceGetClock, struct dev *d, u32 t, u32 id, u32 *o) {
    IN(nvmlDeviceGetClock, d);
    return clk(d, t, o, id > 0);
}
FN(nvmlDeviceGetMaxClockInfo, struct dev *d, u32 t, u32 *o) {
    IN(nvmlDeviceGetMaxClockInfo, d);
    return clk(d, t, o, 1);
}
FN(nvmlDeviceGetApplicationsClock, struct dev *d, u32 t, u32 *o) {
    IN(nvmlDeviceGetApplicationsClock, d);
    return clk(d, t, o, 1);
}
FN(nvmlDeviceGetDefaultApplicationsClock, struct dev *d, u32 t, u32 *o) {
    IN(nvmlDeviceGetDefaultApplicationsClock, d);
    return clk(d, t, o, 1);
}
GETU(nvmlDeviceGetPerformanceState, val(d, S_PSTATE))
GETU(nvmlDeviceGetPowerState, val(d, S_PSTATE))
GETQ(nvmlDeviceGetCurrentClocksThrottleReasons, val(d, S_THROTTLE))
GETQ(nvmlDeviceGetCurrentClocksEventReasons, val(d, S_THROTTLE))
GETQ(nvmlDeviceGetSupportedClocksThrottleReasons, 0x1ff)
GETQ(nvmlDeviceGetSupportedClocksEventReasons, 0x1ff)
GETQ(nvmlDeviceGetSupportedEventTypes, 0x1f)
FN(nvmlDeviceGetViolationStatus, struct dev *d, u32 p, fk_violation *o) {
    IN(nvmlDeviceGetViolationStatus, d);
    ARG(o);
    o->ref = wall_us() * 1000;
    o->viol = 0;
    return OK;
}
static int fan(struct dev *d, u32 *o) {
    double f = val(d, S_FAN);
    if (f < 0) return NOT_SUPPORTED;
    if (!o) return INVALID_ARGUMENT;
    *o = f;
    return OK;
}
FN(nvmlDeviceGetFanSpeed, struct dev *d, u32 *o) {
    IN(nvmlDeviceGetFanSpeed, d);
    return fan(d, o);
}
FN(nvmlDeviceGetFanSpeed_v2, struct dev *d, u32 i, u32 *o) {
    IN(nvmlDeviceGetFanSpeed_v2, d);
    return fan(d, o);
}
FN(nvmlDeviceGetNumFans, struct dev *d, u32 *o) {
    IN(nvmlDeviceGetNumFans, d);
    ARG(o);
    *o = val(d, S_FAN) < 0 ? 0 : 1;
    return OK;
}
FN(nvmlDeviceGetPcieThroughput, struct dev *d, u32 c, u32 *o) {
    IN(nvmlDeviceGetPcieThroughput, d);
    ARG(o && c < 2);
    nap(pcie_ns);
    *o = val(d, c ? S_PRX : S_PTX);
    leave();
    return OK;
}
GETU(nvmlDeviceGetCurrPcieLinkGeneration, d->gen)
GETU(nvmlDeviceGetCurrPcieLinkWidth, d->width)
GETU(nvmlDeviceGetMaxPcieLinkGeneration, d->max_gen)
GETU(nvmlDeviceGetGpuMaxPcieLinkGeneration, d->card_max_gen)
GETU(nvmlDeviceGetMaxPcieLinkWidth, d->max_width)
GETU(nvmlDeviceGetPcieReplayCounter, val(d, S_REPLAY))
GETU(nvmlDeviceGetPcieLinkMaxSpeed, 32000)
GETU(nvmlDeviceGetPcieSpeed, 32000)
GETU(nvmlDeviceGetMemoryBusWidth, 5120)
#define LINK(n)                                                                                    \
    FN(n, struct dev *d, u32 l, u32 *o) {                                                          \
        IN(n, d);                                                                                  \
        ARG(o);                                                                                    \
        if (l >= (u32)d->nvlinks) return d->nvlinks ? INVALID_ARGUMENT : NOT_SUPPORTED;            \
        *o = 1;                                                                                    \
        return OK;                                                                                 \
    }
LINK(nvmlDeviceGetNvLinkState)
LINK(nvmlDeviceGetNvLinkVersion)
LINK(nvmlDeviceGetNvLinkRemoteDeviceType)
FN(nvmlDeviceGetNvLinkCapability, struct dev *d, u32 l, u32 c, u32 *o) {
    IN(nvmlDeviceGetNvLinkCapability, d);
    ARG(o);
    if (l >= (u32)d->nvlinks) return INVALID_ARGUMENT;
    *o = 1;
    return OK;
}
FN(nvmlDeviceGetNvLinkErrorCounter, struct dev *d, u32 l, u32 c, u64 *o) {
    IN(nvmlDeviceGetNvLinkErrorCounter, d);
    ARG(o);
    if (l >= (u32)d->nvlinks) return INVALID_ARGUMENT;
    *o = 0;
    return OK;
}
FN(nvmlDeviceGetNvLinkRemotePciInfo_v2, struct dev *d, u32 l, fk_pci *o) {
    IN(nvmlDeviceGetNvLinkRemotePciInfo_v2, d);
    ARG(o);
    if (l >= (u32)d->nvlinks) return INVALID_ARGUMENT;
    fill_pci(d, o);
    o->bus = 0xc0 + l % 4;
    snprintf(o->bus_id, 32, "00000000:%02X:00.0", o->bus);
    return OK;
}
