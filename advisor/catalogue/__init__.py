"""What is publicly known of GPUs and of models: data with sources, and how to find it.

find_gpu("NVIDIA L40S") -> Gpu | None
find_model("meta-llama/Llama-3.1-70B-Instruct") -> Model | None
"""

from advisor.catalogue.gpus import Gpu, PciId, find_gpu, gpus, normalise_name, suggest_gpus

__all__ = ["Gpu", "PciId", "find_gpu", "gpus", "normalise_name", "suggest_gpus"]
