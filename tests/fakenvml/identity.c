/* Modes, topology, ECC, MIG; and what is present but not supported. */
#include "fakenvml.h"
GETU(nvmlDeviceGetNumGpuCores, d->cores)
GETU(nvmlDeviceGetArchitecture, d->arch)
GETU(nvmlDeviceGetBrand, d->brand)
GETU(nvmlDeviceGetComputeMode, 0)
GETU(nvmlDeviceGetPersistenceMode, d->persistence)
GETU(nvmlDeviceGetDisplayActive, 0)
GETU(nvmlDeviceGetDisplayMode, 0)
GETU(nvmlDeviceGetBusType, 2)
GETU(nvmlDeviceGetIrqNum, 100 + d->slot)
GETU(nvmlDeviceGetNumaNodeId, d->slot / 4)
GETU(nvmlDeviceGetMaxMigDeviceCount, d->mig < 0 ? 0 : 7)
GETU(nvmlDeviceIsMigDeviceHandle, d->is_mig)
GETU(nvmlDeviceGetRetiredPagesPendingStatus, 0)
GETU(nvmlDeviceGetAccountingMode, 0)
GETU(nvmlDeviceGetVirtualizationMode, d->virtualization)
FN(nvmlDeviceGetCudaComputeCapability, struct dev *d, int *a, int *b) {
    IN(nvmlDeviceGetCudaComputeCapability, d);
    ARG(a && b);
    *a = d->cc_major;
    *b = d->cc_minor;
    return OK;
}
FN(nvmlDeviceGetMigMode, struct dev *d, u32 *a, u32 *b) {
    IN(nvmlDeviceGetMigMode, d);
    ARG(a && b);
    if (d->mig < 0) return NOT_SUPPORTED;
    *a = *b = d->mig;
    return OK;
}
FN(nvmlDeviceGetMigDeviceHandleByIndex, struct dev *d, u32 i, void **o) {
    IN(nvmlDeviceGetMigDeviceHandleByIndex, d);
    ARG(o);
    if (d->mig < 1) return NOT_SUPPORTED;
    if (i >= (u32)d->ninstances) return NOT_FOUND;
    *o = &M[d->slot][i];
    return OK;
}
FN(nvmlDeviceGetEccMode, struct dev *d, u32 *a, u32 *b) {
    IN(nvmlDeviceGetEccMode, d);
    ARG(a && b);
    *a = *b = d->ecc_mode;
    return OK;
}
FN(nvmlDeviceGetTotalEccErrors, struct dev *d, u32 e, u32 c, u64 *o) {
    IN(nvmlDeviceGetTotalEccErrors, d);
    ARG(o);
    *o = val(d, e ? S_ECC_U : S_ECC_C);
    return OK;
}
FN(nvmlDeviceGetDetailedEccErrors, struct dev *d, u32 e, u32 c, fk_ecc *o) {
    IN(nvmlDeviceGetDetailedEccErrors, d);
    ARG(o);
    memset(o, 0, sizeof *o);
    o->dev = val(d, e ? S_ECC_U : S_ECC_C);
    return OK;
}
FN(nvmlDeviceGetMemoryErrorCounter, struct dev *d, u32 e, u32 c, u32 l, u64 *o) {
    IN(nvmlDeviceGetMemoryErrorCounter, d);
    ARG(o);
    *o = l == 2 ? val(d, e ? S_ECC_U : S_ECC_C) : 0;
    return OK;
}
FN(nvmlDeviceGetRetiredPages, struct dev *d, u32 c, u32 *n, u64 *a) {
    IN(nvmlDeviceGetRetiredPages, d);
    ARG(n);
    *n = 0;
    return OK;
}
FN(nvmlDeviceGetRetiredPages_v2, struct dev *d, u32 c, u32 *n, u64 *a, u64 *t) {
    IN(nvmlDeviceGetRetiredPages_v2, d);
    ARG(n);
    *n = 0;
    return OK;
}
FN(nvmlDeviceGetRemappedRows, struct dev *d, u32 *a, u32 *b, u32 *p, u32 *f) {
    IN(nvmlDeviceGetRemappedRows, d);
    ARG(a && b && p && f);
    *a = *b = *p = *f = 0;
    return OK;
}
FN(nvmlDeviceGetRowRemapperHistogram, struct dev *d, fk_rowhist *o) {
    IN(nvmlDeviceGetRowRemapperHistogram, d);
    ARG(o);
    memset(o, 0, sizeof *o);
    o->max = 640;
    return OK;
}
static int affinity(struct dev *d, u32 n, unsigned long *o, int cpus) {
    if (!o || !n) return INVALID_ARGUMENT;
    memset(o, 0, n * sizeof *o);
    if (!cpus) {
        o[0] = 1UL << (d->slot / 4);
        return OK;
    }
    for (int c = 0; c < 56; c++) {
        u32 k = c + (d->slot / 4) * 56;
        if (k / 64 < n) o[k / 64] |= 1UL << k % 64;
    }
    return OK;
}
FN(nvmlDeviceGetCpuAffinity, struct dev *d, u32 n, unsigned long *o) {
    IN(nvmlDeviceGetCpuAffinity, d);
    return affinity(d, n, o, 1);
}
FN(nvmlDeviceGetCpuAffinityWithinScope, struct dev *d, u32 n, unsigned long *o, u32 s) {
    IN(nvmlDeviceGetCpuAffinityWithinScope, d);
    return affinity(d, n, o, 1);
}
FN(nvmlDeviceGetMemoryAffinity, struct dev *d, u32 n, unsigned long *o, u32 s) {
    IN(nvmlDeviceGetMemoryAffinity, d);
    return affinity(d, n, o, 0);
}
FN(nvmlDeviceGetTopologyCommonAncestor, struct dev *d, struct dev *e, u32 *o) {
    IN(nvmlDeviceGetTopologyCommonAncestor, d);
    ARG(o && e);
    *o = d->slot / 4 == e->slot / 4 ? 40 : 50;
    return OK;
}
FN(nvmlDeviceGetP2PStatus, struct dev *d, struct dev *e, u32 i, u32 *o) {
    IN(nvmlDeviceGetP2PStatus, d);
    ARG(o && e);
    int nvlink = i == 2; /* NVML_P2P_CAPS_INDEX_NVLINK */
    *o = nvlink && !(d->nvlinks && e->nvlinks) ? 5 : 0; /* NVML_P2P_STATUS_NOT_SUPPORTED */
    return OK;
}
#define NS(n)                                                                                      \
    FN(n, struct dev *d) {                                                                         \
        IN(n, d);                                                                                  \
        return NOT_SUPPORTED;                                                                      \
    }
#define OFMIG(n, e)                                                                                \
    FN(n, struct dev *d, u32 *o) {                                                                 \
        IN(n, d);                                                                                  \
        ARG(o);                                                                                    \
        if (!d->is_mig) return NOT_SUPPORTED;                                                      \
        *o = (u32)(e);                                                                             \
        return OK;                                                                                 \
    }
static const struct mig *instance(const struct dev *d) {
    return &d->parent->instances[d - M[d->slot]];
}
OFMIG(nvmlDeviceGetGpuInstanceId, instance(d)->gi)
OFMIG(nvmlDeviceGetComputeInstanceId, instance(d)->ci)
FN(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, struct dev *d, struct dev **o) {
    IN(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, d);
    ARG(o);
    if (!d->is_mig) return NOT_SUPPORTED;
    *o = handle(d->parent);
    return OK;
}
NS(nvmlDeviceGetAttributes_v2)
NS(nvmlDeviceGetGpuInstances)
NS(nvmlDeviceGetGpuInstanceProfileInfo)
NS(nvmlDeviceGetGpuInstanceProfileInfoV)
NS(nvmlDeviceGetGpuInstanceById)
NS(nvmlDeviceGetGpuInstanceRemainingCapacity)
NS(nvmlDeviceGetGpuInstancePossiblePlacements_v2)
NS(nvmlDeviceCreateGpuInstance)
NS(nvmlDeviceGetRunningProcessDetailList)
NS(nvmlDeviceGetConfComputeMemSizeInfo)
NS(nvmlDeviceGetDriverModel)
NS(nvmlDeviceGetDriverModel_v2)
NS(nvmlDeviceGetAccountingPids)
NS(nvmlDeviceGetAccountingStats)
NS(nvmlDeviceGetAccountingBufferSize)
NS(nvmlDeviceSetAccountingMode)
NS(nvmlDeviceSetPersistenceMode)
NS(nvmlDeviceGetGpuFabricInfo)
NS(nvmlDeviceGetGpuFabricInfoV)
NS(nvmlDeviceGetThermalSettings)
NS(nvmlDeviceGetFanSpeedRPM)
NS(nvmlDeviceGetMarginTemperature)
NS(nvmlDeviceGetNvLinkUtilizationCounter)
NS(nvmlDeviceGetEncoderStats)
NS(nvmlDeviceGetEncoderSessions)
NS(nvmlDeviceGetFBCStats)
NS(nvmlDeviceGetAutoBoostedClocksEnabled)
NS(nvmlDeviceGetGpuOperationMode)
NS(nvmlDeviceGetBridgeChipInfo)
NS(nvmlDeviceGetSupportedMemoryClocks)
NS(nvmlDeviceGetSupportedGraphicsClocks)
NS(nvmlGpmQueryIfStreamingEnabled)
NS(nvmlDeviceGetActiveVgpus)
NS(nvmlDeviceGetPowerSource)
NS(nvmlDeviceGetAdaptiveClockInfoStatus)
NS(nvmlDeviceGetClkMonStatus)
NS(nvmlDeviceGetInforomVersion)
NS(nvmlDeviceGetGspFirmwareVersion)
NS(nvmlDeviceGetGspFirmwareMode)
NS(nvmlDeviceGetDynamicPstatesInfo)
