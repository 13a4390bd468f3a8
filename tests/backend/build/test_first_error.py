"""What a failed command failed of, from logs as the tools write them."""

import pytest

from backend.build.build import first_error


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "fatal: not a git repository (or any of the parent directories): .git\n"
            'CMake Error at /usr/share/cmake-3.25/FindPackageHandleStandardArgs.cmake:230 (message):\n'
            '  Could NOT find Vulkan (missing: Vulkan_LIBRARY) (found version "")\n'
            "Call Stack (most recent call first):\n"
            "-- Configuring incomplete, errors occurred!\n",
            'Could NOT find Vulkan (missing: Vulkan_LIBRARY) (found version "")',
        ),
        (
            "CMake Error at ggml/CMakeLists.txt:13 (find_package):\n\n  Could not find it.\n",
            "Could not find it",
        ),
        (
            "-- Warning: NCCL not found, performance for multiple CUDA GPUs will be suboptimal\n"
            "[7/357] Building CXX object error.cpp.o\n"
            "ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'\n"
            "x.cu:3: error: another one\n",
            "ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement x==1\n",
            "ERROR: Could not find a version that satisfies the requirement x==1",
        ),
        ("-- The C compiler identification is unknown\n", ""),
        ("CMake Error at the end of a log\n", "CMake Error at the end of a log"),
        (
            "FAILED: tools/ui/ui.cpp\nCMake Error: Error processing file: /k/ui-assets.cmake\n[9/12] Building x.o\n",
            "CMake Error: Error processing file: /k/ui-assets.cmake",
        ),
    ],
)  # fmt: skip
def test_the_first_error_is_found(log: str, expected: str) -> None:
    assert first_error(log.splitlines()) == expected
