"""What people call the states, verdicts, dimensions, phases and causes."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.finding import Basis, Dimension, Finding, Verdict
from advisor.message import Message, say
from advisor.phase import Phase
from telemetry.states import Cause, State

VERDICTS: Mapping[Verdict, Message] = {
    Verdict.OVER: say("too big"),
    Verdict.UNDER: say("too small"),
    Verdict.RIGHT: say("fits"),
    Verdict.IDLE: say("idle"),
    Verdict.ABSTAIN: say("not known"),
    Verdict.ADVICE: say("advice"),
}

MARKS: Mapping[Verdict, str] = {
    Verdict.OVER: "▲",
    Verdict.UNDER: "▼",
    Verdict.RIGHT: "✓",
    Verdict.IDLE: "○",
    Verdict.ABSTAIN: "?",
    Verdict.ADVICE: "i",
}
"""One sign a verdict, so that it is told without colour too."""

DIMENSIONS: Mapping[Dimension, Message] = {
    Dimension.OVERALL: say("The server as a whole"),
    Dimension.GPU_COUNT: say("Number of GPUs"),
    Dimension.GPU_CLASS: say("Kind of GPU"),
    Dimension.VRAM: say("GPU memory"),
    Dimension.INTERCONNECT: say("Links between GPUs"),
    Dimension.PCIE: say("PCIe"),
    Dimension.CPU: say("CPU"),
    Dimension.RAM: say("RAM"),
    Dimension.STORAGE: say("Storage"),
    Dimension.NETWORK: say("Network"),
    Dimension.POWER: say("Power feed"),
    Dimension.USAGE: say("Use"),
}

STATES: Mapping[State, Message] = {
    State.BUSY: say("at work"),
    State.STARVED: say("kept waiting"),
    State.STUCK: say("stuck"),
    State.ORPHAN_HELD: say("held by a dead job"),
    State.IDLE_HELD: say("held idle"),
    State.IDLE_FREE: say("idle and free"),
    State.UNKNOWN: say("not known"),
}
"""In the order in which they are drawn and listed."""

MEANINGS: Mapping[State, Message] = {
    State.BUSY: say("some kernel ran; how hard the GPU worked is told by its utilisation"),
    State.STARVED: say("a live job computed less than it could, and the host was seen to be why"),
    State.STUCK: say("busy by its own account, while nothing moved"),
    State.ORPHAN_HELD: say("its memory is held, and no live process holds it"),
    State.IDLE_HELD: say("a live process holds its memory and computes nothing"),
    State.IDLE_FREE: say("nothing runs and nothing is held"),
    State.UNKNOWN: say("there are no samples, or they do not tell"),
}

CAUSES: Mapping[Cause, Message] = {
    Cause.LOCAL_STORAGE: say("local storage"),
    Cause.CPU_DATALOADER: say("CPU of the data loader"),
    Cause.NETWORK_STORAGE: say("network storage"),
    Cause.FUSE_OR_OBJECT_STORAGE: say("FUSE or object storage"),
    Cause.HOST_MEMORY: say("host memory"),
    Cause.PCIE: say("PCIe"),
    Cause.CHECKPOINTING: say("checkpoints"),
    Cause.COMMUNICATION: say("communication"),
    Cause.THROTTLED: say("throttling"),
    Cause.UNKNOWN: say("cause not known"),
}

PHASES: Mapping[Phase, Message] = {
    Phase.TRAINING: say("training"),
    Phase.FULL_FINETUNING: say("full fine-tuning"),
    Phase.LORA_FINETUNING: say("LoRA fine-tuning"),
    Phase.QLORA_FINETUNING: say("QLoRA fine-tuning"),
    Phase.FINETUNING: say("fine-tuning"),
    Phase.TRAINING_OR_FINETUNING: say("training or fine-tuning"),
    Phase.LLM_INFERENCE: say("LLM inference"),
    Phase.LIGHT_INFERENCE: say("light inference"),
    Phase.INFERENCE: say("inference"),
    Phase.IDLE: say("idle"),
    Phase.UNKNOWN: say("not known"),
}

SHOWN_HOURS = 0.005
"""Hours below this are what rounding left, and no row of a table."""

BASES: Mapping[Basis, Message] = {
    Basis.PHYSICAL: say("physical"),
    Basis.MEASURED: say("measured"),
    Basis.DOCUMENTED: say("documented"),
}

OWNER_KINDS: Mapping[str, Message] = {
    "systemd_unit": say("service"),
    "unit": say("service"),
    "container": say("container"),
    "kubernetes_pod": say("pod"),
    "slurm_job": say("Slurm job"),
    "user": say("user"),
}


def verdict(finding: Finding) -> Message:
    """The verdict in words: short of a guide alone is told as such, not as too small."""
    if finding.verdict is Verdict.UNDER and finding.basis is Basis.DOCUMENTED:
        return say("below the guide")
    return VERDICTS[finding.verdict]


def tone(finding: Finding) -> str:
    """The name under which a verdict is coloured: a guide's shortfall less than a real one."""
    if finding.verdict is Verdict.UNDER and finding.basis is Basis.DOCUMENTED:
        return "below"
    return finding.verdict.value
