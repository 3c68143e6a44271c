"""The script of OBS as a module, without OBS. Its file name is none that Python imports."""

import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
path = pathlib.Path(__file__).parents[2] / "obs" / "relay-control.py"
spec = importlib.util.spec_from_file_location("relay_control", path)
relay_control = importlib.util.module_from_spec(spec)
spec.loader.exec_module(relay_control)
