"""Programs that run inside pods. They import the standard library, what their image holds, and each other;
nothing else of the project.

A pod gets the files of this folder side by side from one ConfigMap, mounted as a folder named `payloads`
(for example at `/opt/payloads` with working directory `/opt`), and runs `python -m payloads.<program>`.
"""
