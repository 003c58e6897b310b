import pytest
from radix_helpers import SmallCache


@pytest.fixture
def small() -> SmallCache:
    return SmallCache()
