"""The backend of torch.compile, compared with PyTorch itself."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
try:
    import tenon.torch
except ImportError as e:  # of an older PyTorch, without torch.compile
    pytest.skip(f"this PyTorch has no torch.compile: {e}", allow_module_level=True)

F = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    tenon.torch._graph.said.clear()
    tenon.torch._plans.clear()


def both(f, *args, whole=True):
    """f by PyTorch and by tenon: equal results, and equal gradients."""
    sides = []
    for g in (f, torch.compile(f, backend="tenon", dynamic=False)):
        torch.manual_seed(1)
        xs = [a.detach().clone().requires_grad_(a.requires_grad)
              if isinstance(a, torch.Tensor) else a for a in args]
        out = g(*xs)
        outs = out if isinstance(out, (tuple, list)) else [out]
        leaves = [x for x in xs if isinstance(x, torch.Tensor) and x.requires_grad]
        grads = []
        if leaves:
            total = sum((o * (o.detach() + 1)).sum() for o in outs if o.requires_grad)
            grads = torch.autograd.grad(total, leaves)
        sides.append((outs, grads, xs))
    for a, b in zip(*sides):
        for x, y in zip(a, b):
            if isinstance(x, torch.Tensor):
                torch.testing.assert_close(y, x, equal_nan=True)
                assert y.is_contiguous() or not x.is_contiguous()
    if whole:
        assert tenon.torch.report() == {}
    return sides[1][0]


def rand(*shape, grad=True):
    return torch.randn(shape, requires_grad=grad)


CASES = {
    "elementwise": lambda x, y: (x * y + 2).tanh() / (y.exp() + 1) - x.abs().sqrt(),
    "broadcast": lambda x, y: x[:, None] * y[None] + x.sum(),
    "softmax": lambda x, y: F.log_softmax(x, 1) * F.softmax(y, 0),
    "reduce": lambda x, y: (x.mean(0), y.amax(1), x.var(1), (x * y).prod(0)),
    "norm": lambda x, y: F.layer_norm(x, (8,)) + F.normalize(y, dim=0),
    "product": lambda x, y: (x @ y.T, torch.addmm(x[:, :4], x, y.T, beta=0.5, alpha=2)),
    "views": lambda x, y: (x.t().reshape(2, 16) * 2, y.flip(0)[1:, ::3],
                           torch.cat([x, y], 1).view(4, 4, 4).permute(2, 0, 1) + 1),
    "index": lambda x, y: (x[torch.tensor([0, -1, 2])], y[:, torch.tensor([[1], [2]])],
                           x.gather(1, torch.tensor([[0, 3], [1, 1], [2, 2], [7, 0]]))),
    "write": lambda x, y: torch.zeros(4, 8).index_put((torch.tensor([1, 1, 3]),), x[:3],
                                                      accumulate=True) + y,
    "scatter": lambda x, y: x.scatter_add(1, torch.zeros(4, 8, dtype=torch.int64), y),
    "parts": lambda x, y: (x.select_scatter(y[0], 0, 2), x.slice_scatter(y[1:3], 0, 0, 2),
                           x.diagonal_scatter(y[0, :4]), x.t().slice_scatter(y.t(), 1)),
    "in place": lambda x, y: (x * 1).add_(y)[:, 2:].mul_(3),
    "sort": lambda x, y: (x.sort(1)[0], y.topk(3)[0], x.cumsum(0), y.max(1)[0]),
    "where": lambda x, y: torch.where(x > y, x, y * 2).clamp(-1, 1).masked_fill(y > 1, 0.),
    "dtypes": lambda x, y: (x.double() + y, x.half() * 2, (x > 0) + 1, x.int() // 2 + 0.5),
    "losses": lambda x, y: (F.mse_loss(x, y), F.smooth_l1_loss(x, y),
                            F.cross_entropy(x, torch.tensor([1, 2, 7, 0])),
                            F.binary_cross_entropy_with_logits(x, y.sigmoid())),
    "order": lambda x, y: (x.kthvalue(3)[0], x.median(1)[0], y.nanmedian(), y.cummax(1)[0],
                           x.cummin(0)[1], (x * 2).round().mode(1)[0], y.logcumsumexp(1),
                           torch.searchsorted(x.detach().sort(1)[0], y, right=True),
                           torch.bucketize(y, torch.arange(-2, 3)), x.histc(5, -1, 1)),
    "masks": lambda x, y: (x.masked_scatter(y > 0, y * 3), x.put(torch.tensor([-1, 3]), y[0, :2]),
                           torch.nonzero_static(x > 0, size=9),
                           x.index_reduce(0, torch.tensor([1, 1, 0, 3]), y, "amax")),
    "special": lambda x, y: (torch.lgamma(x), torch.digamma(y), torch.polygamma(2, x.abs() + 1),
                             torch.i0(x * 9), torch.special.i1e(y * 30), torch.erfc(x * 4),
                             torch.erfinv(y.tanh()), torch.special.erfcx(x * 3)),
    "bits": lambda x, y: (x.copysign(y), x.copysign(-0.0), *torch.frexp(x), x.ldexp(y.round()),
                          y.signbit(), x.hypot(y), y.angle(), x.round(decimals=1),
                          torch.nextafter(x.detach(), y.detach())),
    "distances": lambda x, y: (torch.cdist(x, y, 1.0), torch.cdist(x, y, 3.0),
                               torch.cdist(x, y, float("inf")), torch.dist(x, y, 3),
                               torch.addbmm(x, y.view(2, 4, 4), x.repeat(2, 1).view(2, 4, 8))),
    "gelu": lambda x, y: (F.gelu(x), F.gelu(y, approximate="tanh"), F.elu(x), F.silu(y)),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    both(CASES[name], rand(4, 8), rand(4, 8))


def test_convolution():
    x, w = rand(2, 4, 9, 8), rand(6, 2, 3, 3)
    both(lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2), x, w)
    both(lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1),
         x, rand(4, 3, 3, 3))
    both(lambda x, w: F.conv1d(x, w, torch.ones(5)), rand(2, 4, 9), rand(5, 4, 3))
    both(lambda x: F.conv2d(x.to(memory_format=torch.channels_last),
                            torch.ones(1, 4, 2, 2)), x)


def test_pooling():
    x = rand(2, 3, 9, 8)
    both(lambda x: F.max_pool2d(x, 3, 2, 1), x)
    both(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), x)
    both(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), x)
    both(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), x)
    both(lambda x: F.max_pool2d(x, 2, return_indices=True), x)
    both(lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), x)
    both(lambda x: F.interpolate(x, (4, 11), mode="bilinear", antialias=True), x)


def test_attention():
    q = rand(2, 3, 5, 4)
    both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         q, rand(2, 3, 5, 4), rand(2, 3, 5, 4))
    mask = torch.randn(2, 1, 5, 6)
    both(lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, enable_gqa=True),
        rand(2, 4, 5, 4), rand(2, 2, 6, 4), rand(2, 2, 6, 4))


def test_embedding():
    ids = torch.tensor([[1, 2], [2, 0]])
    both(lambda w: F.embedding(ids, w, padding_idx=2), rand(3, 4))
    g = torch.compile(lambda w, i: w[i], backend="tenon")
    with pytest.raises(IndexError):
        g(torch.zeros(3), torch.tensor([5]))
    assert g(torch.ones(3), torch.tensor([2])).tolist() == [1.0]


def test_random():
    """Numbers are those that PyTorch draws without a compiler."""
    both(lambda x: F.dropout(x, 0.4) + torch.rand(4, 8) * torch.randn_like(x),
         rand(4, 8), whole=False)
    assert set(tenon.torch.report().values()) == {"random numbers"}
    assert len(tenon.torch.programs()) == 2  # forward and backward


def test_special_values():
    """What stands at the ends and at poles of functions made of several rows."""
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, -2.5, 1e-40, 3e38, -3e38, inf, -inf, nan, 171.5])
    y = x.flip(0)
    both(lambda x, y: (torch.lgamma(x), torch.digamma(x), torch.i0(x), torch.special.i1e(x),
                       torch.erfc(x), torch.special.erfcx(x), torch.erfinv(x), x.copysign(y),
                       *torch.frexp(x), x.hypot(y), x.angle(), x.signbit(), x.cummax(0)[1],
                       torch.nextafter(x, y), x.nanmedian(), x.median(0)[0], x.kthvalue(12)[0]),
         x, y)


def test_mutation():
    """Writes to arguments reach their memory, in the program itself."""
    def step(x, buf):
        buf.mul_(0.9).add_(x.sum(0))
        x[:, 1] = 7
        return (x * buf).sum()

    x, buf = rand(3, 4, grad=False), torch.ones(4)
    both(step, x, buf)
    assert "param" in tenon.torch.programs()[0]
    place = buf.data_ptr()
    torch.compile(step, backend="tenon")(x, buf)
    assert buf.data_ptr() == place and not torch.equal(buf, torch.ones(4))


def test_strides():
    x = torch.randn(6, 5).t()
    both(lambda x: (x * 2, x.sum(0)), x)
    g = torch.compile(lambda x: x * 2 + 1, backend="tenon", dynamic=False)
    for y in (torch.randn(5, 6), x, torch.randn(5, 12)[:, ::2], torch.randn(6).expand(5, 6)):
        torch.testing.assert_close(g(y), y * 2 + 1)


def test_sizes():
    """Sizes that change make one graph, and a program for each of them."""
    g = torch.compile(lambda x: torch.cat([x, x * x.shape[0]]).softmax(0), backend="tenon",
                      dynamic=True)
    for n in (3, 4, 7, 3):
        x = torch.randn(n, 2)
        torch.testing.assert_close(g(x), torch.cat([x, x * n]).softmax(0))
    assert len(tenon.torch.programs()) == 3


def test_empty_and_scalar():
    both(lambda x: (x * 2 + 1, x.sum(), x.sum(0)), rand(0, 3))
    both(lambda x: x.exp() * 2, torch.tensor(2.0, requires_grad=True))


def test_missing():
    """What no rows are known for runs in PyTorch, is named once, and splits the graph."""
    def f(x):
        y = (x * 2).exp()
        z = torch.linalg.inv(y.view(2, 2) + torch.eye(2) * 9)
        return z.sum() + y * 3

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        both(f, rand(4, grad=False), whole=False)
        torch._dynamo.reset()
        both(f, rand(4, grad=False), whole=False)
    said = [str(w.message) for w in said if "tenon" in str(w.message)]
    assert len(said) == 1 and "linalg_inv" in said[0] and "aten.def" in said[0]
    assert len(tenon.torch.programs()) == 4


def test_training():
    """Twenty steps of a small net: the curve of PyTorch, within 1e-4."""
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Dropout(0.1),
        torch.nn.Linear(64, 5))
    x, y = torch.randn(6, 1, 8, 8), torch.arange(6) % 5
    curves = []
    for wrap in (lambda m: m, lambda m: torch.compile(m, backend="tenon")):
        m = copy.deepcopy(net)
        opt = torch.optim.AdamW(m.parameters(), lr=1e-2)
        f, losses = wrap(m), []
        torch.manual_seed(3)
        for _ in range(20):
            loss = F.cross_entropy(f(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        curves.append(losses)
    assert curves[1] == pytest.approx(curves[0], rel=1e-4)
    assert curves[0][-1] < curves[0][0] / 2


def test_table():
    """Each line of aten.def is an operator, once, with a builder that exists."""
    import pathlib
    import re
    path = pathlib.Path(tenon.torch.__file__).parent / "aten.def"
    names = re.findall(r'^OP\("([^"]+)"', path.read_text(encoding="utf-8"), re.M)
    assert len(names) == len(set(names)) > 150
    assert len(tenon.torch.operators()) >= len(names) - 5  # of other versions of PyTorch
    with pytest.raises(Exception, match="options"):
        torch.compile(lambda x: x + 1, backend="tenon", options={"a": 1})(torch.ones(2))


def test_docs():
    import doctest
    import pathlib
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "torch.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0 and tried >= 4
