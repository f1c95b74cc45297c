"""What is publicly known of GPUs and of models: data with sources, and how to find it.

`find_gpu("NVIDIA L40S")` and `find_model("meta-llama/Llama-3.1-70B-Instruct")` answer None for
what the catalogue does not know.
"""

from advisor.catalogue.config_json import ConfigError, check_count, load_config, model_from_config
from advisor.catalogue.gpus import Gpu, PciId, find_gpu, gpus, normalise_name, suggest_gpus
from advisor.catalogue.model import Model, Shape
from advisor.catalogue.models import find_model, models, quant_in_name

__all__ = [
    "ConfigError",
    "Gpu",
    "Model",
    "PciId",
    "Shape",
    "check_count",
    "find_gpu",
    "find_model",
    "gpus",
    "load_config",
    "model_from_config",
    "models",
    "normalise_name",
    "quant_in_name",
    "suggest_gpus",
]
