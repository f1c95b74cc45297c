"""Money: published figures, billing modes, energy by counter, and files that are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import cli, prices
from advisor.assessment import Observations
from advisor.errors import ConfigError
from advisor.finding import Dimension, Verdict
from advisor.money import (
    Payback,
    carbon_kilograms,
    energy,
    payback,
    payback_months,
    saving,
    with_savings,
)
from advisor.prices import Range
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from tests.staged.frames import Made, case, observations

HEAD = 'currency = "EUR"\nsource = "our bill"\n'
NONE = Range(0.0, 0.0)


def of(table: str) -> prices.Prices:
    """Prices with one table for every server."""
    return prices.parse(f'{HEAD}[[servers]]\nhosts = ["*"]\n{table}', "prices.toml")


# 15,000 EUR back in 9 to 14 months is a rent of 1.47 to 2.28 EUR an hour, without pause.
@pytest.mark.parametrize(
    ("purchase", "rent", "duty", "months"),
    [
        (15_000, Range(1.47, 2.28), 1.0, (9, 14)),
        (15_000, Range(1.47, 2.28), 0.3, (30, 47)),
        (250_000, Range(24.5, 38.0), 1.0, (9, 14)),
    ],
)
def test_the_documented_payback_and_what_it_hangs_on(
    purchase: float, rent: Range, duty: float, months: tuple[int, int]
) -> None:
    found = payback_months(Range(purchase, purchase), rent, duty, NONE)
    assert found is not None
    assert (round(found.low), round(found.high)) == months


def test_a_rent_below_the_running_costs_never_pays_back() -> None:
    assert payback_months(Range(1e4, 1e4), Range(1.0, 1.0), 0.1, Range(100.0, 100.0)) is None
    half = payback_months(Range(1e4, 1e4), Range(1.0, 3.0), 0.1, Range(100.0, 100.0))
    assert half is not None
    assert math.isinf(half.high)
    assert "at worst never" in str(Payback(half, 0.1, "hourly", NONE).sentence)


def test_payback_tells_duty_and_the_documented_assumption() -> None:
    seen = observations(Made(cards=2))
    owned = of('billing = "owned"\npurchase = 15000\nrent_per_gpu_hour = [0.73, 1.14]')
    found = payback(seen, 300.0, 1000.0, owned)
    assert found is not None
    assert found.duty_ratio == 0.3
    text = str(found.sentence)
    assert "30 to 47 months" in text
    assert "duty of 30 %" in text
    assert "9 to 14 months assume that an inference server works without pause" in text
    assert payback(seen, 300.0, 1000.0, of('billing = "flat"')) is None


def test_without_prices_savings_are_hours_and_energy() -> None:
    seen = _with_energy(observations(Made(cards=2)), watts=100.0)
    text = str(saving(seen, 168.0, None))
    assert text == (
        "frees 168 GPU-hours a week (17 kWh a week at the cards' mean power,"
        " if they are switched off)"
    )
    assert str(saving(observations(Made()), 168.0, None)) == "frees 168 GPU-hours a week"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            'billing = "owned"\npurchase = 48000\ndepreciation_months = 48',
            "owned: capacity freed, not cash, of about 500 EUR of depreciation a month (our bill)",
        ),
        ('billing = "owned"', "owned: capacity freed, not cash (our bill)"),
        (
            'billing = "hourly"\nrent_per_gpu_hour = [1.0, 2.0]',
            "rented by the hour, that is 730 to 1500 EUR a month (our bill)",
        ),
        # C11 of the guides: powering off saves nothing under a flat fee.
        ('billing = "flat"\nfee_per_month = 900', "under a flat fee nothing is saved (our bill)"),
    ],
)
def test_what_half_of_a_server_is_worth_by_billing(table: str, told: str) -> None:
    text = str(saving(observations(Made(cards=2)), 168.0, of(table)))
    assert text == f"frees 168 GPU-hours a week; {told}"


def test_a_whole_server_under_a_flat_fee_saves_when_the_contract_ends() -> None:
    flat = of('billing = "flat"\nfee_per_month = 900')
    text = str(saving(observations(Made(cards=2)), 336.0, flat, whole_server=True))
    assert "nothing is saved until the contract ends, then about 900 EUR a month" in text


def test_findings_that_free_gpus_carry_the_sentence() -> None:
    made = Made(cards=4, levels=(0.1,), cache=0.2)
    hourly = of('billing = "hourly"\nrent_per_gpu_hour = 1.0')
    judged = judge(case(made, Rulebook.load()))
    found = {f.dimension: f for f in with_savings(judged, observations(made), hourly)}
    assert found[Dimension.GPU_COUNT].verdict is Verdict.OVER
    assert "2200 EUR a month" in str(found[Dimension.GPU_COUNT].saving)
    assert found[Dimension.CPU].saving is None


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 100), st.integers(0, 100))
def test_a_counter_that_falls_or_pauses_adds_nothing(falls_at: int, pause: int) -> None:
    seen = _with_energy(observations(Made(cards=1, windows=102)), watts=100.0)
    frame = seen.gpus["GPU-0"].frame
    counter = frame.columns["energy_joules_total"]
    for i in range(falls_at, 102):
        value = counter[i]
        assert value is not None
        counter[i] = value - 1e9
    counter[pause] = None
    used = energy(seen)
    assert used is not None
    assert used.counted
    assert used.kwh_per_gpu_week == pytest.approx(100 * 168 / 1000)
    assert used.seconds <= 101 * 300


def test_mean_power_stands_in_where_there_is_no_counter() -> None:
    seen = observations(Made(cards=1))
    frame = seen.gpus["GPU-0"].frame
    frame.columns["power_watts"] = [200.0] * len(frame)
    used = energy(seen)
    assert used is not None
    assert not used.counted
    assert used.kwh == pytest.approx(200 * 168 / 1000)


def test_carbon_needs_the_users_factor() -> None:
    with_factor = prices.parse(f"{HEAD}carbon_grams_per_kwh = 100\npue = [1.2, 1.5]", "prices.toml")
    assert carbon_kilograms(1000.0, with_factor) == Range(120.0, 150.0)
    assert carbon_kilograms(1000.0, of('billing = "flat"')) is None


def test_the_example_is_valid_and_the_first_match_decides() -> None:
    shipped = prices.parse(prices.example(), "prices.example.toml")
    for host, billing in (("chat-7", "owned"), ("vps-2", "flat"), ("train-1", "hourly")):
        table = shipped.of(host)
        assert table is not None
        assert table.billing == billing


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "currency"),
        (HEAD + "pue = 0.9", "pue"),
        (HEAD + "prize = 3", "prize"),
        (HEAD + "electricity_per_kwh = [0.2, 0.1]", "give the lower figure first"),
        (HEAD + "electricity_per_kwh = -1", "electricity_per_kwh"),
        (HEAD + '[[servers]]\nhosts = ["*"]\nbilling = "hourly"', "needs rent_per_gpu_hour"),
        (HEAD + '[[servers]]\nhosts = []\nbilling = "flat"', "hosts"),
        ("currency = ", "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_key(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        prices.load(file)
    assert str(file) in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_prints_the_example_and_checks_a_named_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["config", "--prices"]) == 0
    file = tmp_path / "prices.toml"
    file.write_text(capsys.readouterr().out)
    settings_file = tmp_path / "advisor.toml"
    settings_file.write_text(f'prices = "{file}"')
    assert cli.main(["config", "--check", str(settings_file)]) == 0
    file.write_text('currency = "EUR"')
    assert cli.main(["config", "--check", str(settings_file)]) == 78
    assert f"{file}: source" in capsys.readouterr().err


def _with_energy(seen: Observations, watts: float) -> Observations:
    for uuid, timeline in seen.gpus.items():
        frame = timeline.frame
        frame.columns["energy_joules_total"] = [1e10 + watts * 300.0 * i for i in range(len(frame))]
        seen.gpus[uuid] = replace(timeline)
    return seen
