#!/usr/bin/env python3
# Submits the job by OpenCue's Python package (opencue_pycue), which finds Cuebot by CUEBOT_HOSTS.
import pathlib

import opencue.api

for job in opencue.api.launchSpecAndWait(pathlib.Path(__file__).with_name("job.xml").read_text()):
    print(job.name())
