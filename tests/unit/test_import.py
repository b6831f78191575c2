import subprocess
import sys


def test_importing_headscope_imports_neither_torch_nor_transformers() -> None:
    program = "import headscope, sys; print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []
