"""GPUs by the names, PCI ids and memories that NVML tells."""

from __future__ import annotations

import pytest

from advisor.catalogue import find_gpu, gpus, normalise_name, suggest_gpus

GIB, GB = 1 << 30, 1_000_000_000


def test_every_nvml_name_finds_its_own_card() -> None:
    for gpu in gpus():
        for name in gpu.nvml_names:
            assert find_gpu(name, gpu.memory_bytes) == gpu
            assert find_gpu(name.upper(), gpu.nominal_memory_bytes) == gpu


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA L40S", "L40S"),
        ("L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("A100-SXM4-40GB", "A100-SXM4-40GB"),  # before R470 the vendor is left out
        ("GeForce RTX 3090", "GeForce RTX 3090"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "A100-SXM4-80GB"),
        ("NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", "H100 80GB HBM3"),
        ("RTX PRO 6000", "RTX PRO 6000 Blackwell Server Edition"),
    ],
)
def test_names(name: str, found: str) -> None:
    gpu = find_gpu(name)
    assert gpu is not None
    assert gpu.name == found


@pytest.mark.parametrize(
    "name",
    ["", "NVIDIA GeForce RTX 6090", "GRID A100D-80C", "NVIDIA A40-48Q", "NVIDIA H100", "H100", "A"],
)
def test_what_cannot_be_told_is_not_guessed(name: str) -> None:
    assert find_gpu(name) is None


def test_memory_tells_boards_of_one_name_apart() -> None:
    found = find_gpu("NVIDIA H100", 94 * GIB)
    assert found is not None
    assert found.name == "H100 SXM5 94GB"
    assert find_gpu("NVIDIA H100", 64 * GIB) is None
    assert find_gpu("NVIDIA L40S", 24 * GIB) is None


def test_pci_ids_come_before_names() -> None:
    l40s = find_gpu("anything", pci_device_id=0x26B910DE, pci_subsystem_id=0x185110DE)
    a2 = find_gpu("NVIDIA A16", pci_device_id=0x25B610DE, pci_subsystem_id=0x157E10DE)
    assert l40s is not None
    assert a2 is not None
    assert (l40s.name, a2.name) == ("L40S", "A2")
    # One chip, two products: the device alone does not tell, so the name does.
    by_name = find_gpu("NVIDIA A16", pci_device_id=0x25B610DE)
    assert by_name is not None
    assert by_name.name == "A16"


def test_pci_ids_are_of_one_card_each() -> None:
    ids = [str(pci) for gpu in gpus() for pci in gpu.pci_ids]
    assert len(ids) == len(set(ids))


def test_formats_follow_the_compute_capability() -> None:
    """BF16 from 8.0, FP8 from 8.9, FP4 from 10.0 (CUDA programming guide, feature support)."""
    for gpu in gpus():
        capability = gpu.compute_capability
        if capability is not None:
            expected = (capability >= (8, 0), capability >= (8, 9), capability >= (10, 0))
            assert (gpu.bf16, gpu.fp8, gpu.fp4) == expected, gpu.name


def test_what_the_guide_says_of_cards() -> None:
    """R61: H100 80 GB 3.35 TB/s, H200 141 GB 4.8 TB/s, L40S 48 GB 350 W, L4 24 GB 72 W."""
    by_name = {gpu.name: gpu for gpu in gpus()}
    facts = {
        name: (gpu.nominal_memory_bytes / GB, gpu.bandwidth_bytes_per_second / GB, gpu.power_watts)
        for name, gpu in by_name.items()
    }
    assert facts["H100 80GB HBM3"][:2] == (80, 3350)
    assert facts["H200"][:2] == (141, 4800)
    assert (facts["L40S"][0], facts["L40S"][2]) == (48, 350)
    assert (facts["L4"][0], facts["L4"][2]) == (24, 72)
    server = by_name["RTX PRO 6000 Blackwell Server Edition"]
    assert (server.nominal_memory_bytes, server.memory_type, server.fp4) == (96 * GB, "GDDR7", True)
    assert by_name["H200"].nvlink_bytes_per_second == 900 * GB


def test_cards_that_cannot_have_nvlink_have_none() -> None:
    """C4: L40S, L4, RTX Ada, RTX PRO Blackwell, RTX 4090 and 5090."""
    for gpu in gpus():
        if any(word in gpu.name for word in ("L40", "L4", "Ada", "RTX PRO", "4090", "5090")):
            assert not gpu.has_nvlink, gpu.name


def test_planning_memory_is_what_a_card_has_at_least() -> None:
    for gpu in gpus():
        assert (
            0.97 * gpu.nominal_memory_bytes <= gpu.memory_bytes <= 1.075 * gpu.nominal_memory_bytes
        )
        assert gpu.source
        assert gpu.bandwidth_bytes_per_second > 100 * GB
        assert 40 <= gpu.power_watts <= 1400


def test_suggestions() -> None:
    assert {gpu.name for gpu in suggest_gpus("h100")} >= {"H100 PCIe", "H100 NVL"}
    assert suggest_gpus("") == ()


def test_normal_form() -> None:
    assert normalise_name("  NVIDIA   A30 MIG 1g.6gb ") == "a30"
