"""When heat holds work, and when it lets go."""

from backend.config import ThermalLimits
from backend.gpu.health import ThermalGuard


def test_heat_warns_holds_and_lets_go_with_a_way_back() -> None:
    guard = ThermalGuard(ThermalLimits())
    celsius = [70, 79, 80, 83, 84, 90, 83, 76, 75, 80, 76, 75, 60]
    changes = [(t, change) for t in celsius if (change := guard.take(t))]
    assert changes == [(80, "warn"), (84, "hold"), (75, "resume"), (80, "warn"), (75, "cooled")]
