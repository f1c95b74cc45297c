/* Optional: compares abi.h with NVIDIA's own header (PyPI nvidia-nvml-dev).
 * cc -fsyntax-only -I<dir of nvml.h> abi_check.c */
#include <stddef.h>
#include <nvml.h>
#include "abi.h"
#define SZ(a, b) _Static_assert(sizeof(a) == sizeof(b), #a)
#define OF(a, x, b, y) _Static_assert(offsetof(a, x) == offsetof(b, y), #a "." #x)
SZ(fk_pci, nvmlPciInfo_t);
OF(fk_pci, bus_id, nvmlPciInfo_t, busId);
SZ(fk_pci_ext, nvmlPciInfoExt_v1_t);
SZ(fk_util, nvmlUtilization_t);
SZ(fk_mem, nvmlMemory_t);
SZ(fk_mem2, nvmlMemory_v2_t);
OF(fk_mem2, used, nvmlMemory_v2_t, used);
OF(fk_mem2, free, nvmlMemory_v2_t, free);
SZ(fk_mem, nvmlBAR1Memory_t);
OF(fk_mem, used, nvmlBAR1Memory_t, bar1Used);
OF(fk_mem, used, nvmlMemory_t, used);
SZ(fk_proc1, nvmlProcessInfo_v1_t);
SZ(fk_proc2, nvmlProcessInfo_t);
OF(fk_proc2, gi, nvmlProcessInfo_t, gpuInstanceId);
SZ(fk_procutil, nvmlProcessUtilizationSample_t);
OF(fk_procutil, sm, nvmlProcessUtilizationSample_t, smUtil);
SZ(fk_procutil_v1, nvmlProcessUtilizationInfo_v1_t);
SZ(fk_procsutil_v1, nvmlProcessesUtilizationInfo_v1_t);
SZ(fk_value, nvmlValue_t);
SZ(fk_sample, nvmlSample_t);
SZ(fk_field, nvmlFieldValue_t);
OF(fk_field, ret, nvmlFieldValue_t, nvmlReturn);
OF(fk_field, type, nvmlFieldValue_t, valueType);
SZ(fk_gpm_metric, nvmlGpmMetric_t);
OF(fk_gpm_get, m, nvmlGpmMetricsGet_t, metrics);
OF(fk_gpm_metric, value, nvmlGpmMetric_t, value);
SZ(fk_gpm_support, nvmlGpmSupport_t);
SZ(fk_temp_v1, nvmlTemperature_v1_t);
SZ(fk_fan_v1, nvmlFanSpeedInfo_v1_t);
SZ(fk_ecc, nvmlEccErrorCounts_t);
SZ(fk_violation, nvmlViolationTime_t);
SZ(fk_event, nvmlEventData_t);
SZ(fk_rowhist, nvmlRowRemapperHistogramValues_t);
