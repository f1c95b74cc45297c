"""What a model is, as far as memory goes: its shape, and the parameters that follow from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's dimensions.

    `kv_heads` is the number of key and value heads (grouped-query attention); `latent_width` the
    width of the compressed cache of multi-head latent attention (DeepSeek-V2, section 2.1), where
    `kv_heads` plays no part. The first `dense_layers` MLPs are dense, the others hold `experts` of
    `expert_width` each, of which a token uses `experts_per_token`, and `shared_width` that all use.
    `sliding_layers` of the layers keep only the last `window` tokens.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    mlp_width: int
    mlp_matrices: int = 3
    tied: bool = False
    dense_layers: int | None = None
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_width: int = 0
    shared_gate: bool = False
    latent_width: int | None = None
    query_latent_width: int | None = None
    rope_dim: int = 0
    value_dim: int | None = None
    window: int | None = None
    sliding_layers: int = 0
    qkv_bias: bool = False
    linear_bias: bool = False
    norms: int = 2
    qk_norm: bool = False
    max_positions: int | None = None

    @property
    def dense(self) -> int:
        """Layers whose MLP is not a mixture of experts."""
        return self.layers if not self.experts else (self.dense_layers or 0)

    @property
    def query_dim(self) -> int:
        """Width of one query head."""
        return self.head_dim + self.rope_dim if self.latent_width is not None else self.head_dim

    @property
    def attention_layer(self) -> int:
        """Parameters of one layer's attention projections."""
        value = self.value_dim or self.head_dim
        output = self.heads * value * self.hidden
        if self.latent_width is None:
            keys = self.hidden * self.kv_heads * self.head_dim
            values = self.hidden * self.kv_heads * value
            return self.hidden * self.heads * self.head_dim + keys + values + output
        queries = self.heads * self.query_dim
        if self.query_latent_width:
            query = self.query_latent_width * (self.hidden + queries)
        else:
            query = self.hidden * queries
        compress = self.hidden * (self.latent_width + self.rope_dim)
        expand = self.latent_width * self.heads * (self.head_dim + value)
        return query + compress + expand + output

    @property
    def kv_projection_layer(self) -> int:
        """Parameters of one layer's key and value projections, which follow the KV heads."""
        if self.latent_width is not None:
            return self.hidden * (self.latent_width + self.rope_dim)
        return self.hidden * self.kv_heads * (self.head_dim + (self.value_dim or self.head_dim))

    @property
    def attention_parameters(self) -> int:
        return self.layers * self.attention_layer

    @property
    def expert_parameters(self) -> int:
        """Of the routed experts alone."""
        one = self.mlp_matrices * self.hidden * self.expert_width
        return (self.layers - self.dense) * self.experts * one

    @property
    def mlp_parameters(self) -> int:
        """Of dense MLPs and shared experts."""
        dense = self.dense * self.mlp_matrices * self.hidden * self.mlp_width
        shared = (self.layers - self.dense) * self.mlp_matrices * self.hidden * self.shared_width
        return dense + shared

    @property
    def embedding_parameters(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def head_parameters(self) -> int:
        return 0 if self.tied else self.vocabulary * self.hidden

    @property
    def other_parameters(self) -> int:
        """Norms, biases and routers: never quantised, and small."""
        norms = self.layers * self.norms * self.hidden + self.hidden
        if self.qk_norm:
            norms += self.layers * 2 * self.head_dim
        biases = 0
        if self.qkv_bias:
            biases += self.layers * (self.heads + 2 * self.kv_heads) * self.head_dim
        if self.linear_bias:
            branch = (self.mlp_matrices - 1) * (self.expert_width or self.mlp_width) + self.hidden
            biases += self.layers * (self.hidden + max(self.experts, 1) * branch)
        routers = (self.layers - self.dense) * self.hidden * self.experts
        if self.shared_gate:
            routers += (self.layers - self.dense) * self.hidden
        return norms + biases + routers

    @property
    def linear_parameters(self) -> int:
        """What a quantisation of linear layers reaches: attention, MLPs and experts."""
        return self.attention_parameters + self.expert_parameters + self.mlp_parameters

    @property
    def parameters(self) -> int:
        outside = self.embedding_parameters + self.head_parameters + self.other_parameters
        return self.linear_parameters + outside

    @property
    def active_linear_parameters(self) -> int:
        """Linear parameters that one token passes through."""
        experts = self.expert_parameters
        used = experts * self.experts_per_token // self.experts if self.experts else 0
        return self.attention_parameters + self.mlp_parameters + used

    @property
    def largest_layer_parameters(self) -> int:
        """The largest single weight: DeepSpeed's estimator gathers it whole on every GPU."""
        branch = self.mlp_matrices - 1
        widest = max(self.mlp_width if self.dense else 0, self.shared_width, self.expert_width)
        return max(self.embedding_parameters, self.hidden * widest * max(branch, 1) // branch)


@dataclass(frozen=True, slots=True)
class Model:
    """A model by name. Without a shape only weights and training states can be planned.

    `parameters` is the published count where there is one (it may hold a vision tower that the
    shape does not), else what the shape gives. `quant` is how the published weights are stored
    where that is not 16 bits.
    """

    name: str
    parameters: int
    shape: Shape | None = None
    quant: str | None = None
    largest_layer_parameters: int | None = None
    source: str = ""
    verified: bool = True
    notes: tuple[str, ...] = ()

    @property
    def extra_parameters(self) -> int:
        """Published parameters beyond the shape's, such as a vision tower; 0 without a shape."""
        return max(self.parameters - self.shape.parameters, 0) if self.shape is not None else 0
