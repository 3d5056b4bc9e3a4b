"""What Dagster loads: every model, the lane of models by path, and the calibration of kernels.

Loading imports Dagster and reads source for code versions; nothing that computes is imported before a step
runs.
"""

import gc

import dagster as dg

from compiler.models.programs import PROGRAMS
from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel
from pipeline.calibration_assets import calibration_definitions
from pipeline.model_definitions import definitions_of
from pipeline.user_model import user_model_definitions

# What the imports made stays as long as the process: collections need not look at it while sources are read
# for code versions, which makes millions of short-lived objects.
gc.freeze()
defs = dg.Definitions.merge(
    definitions_of([*(GraphModel(name=model.name) for model in MODELS), *PROGRAMS.values()]),
    user_model_definitions(),
    calibration_definitions(),
)
