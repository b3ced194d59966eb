"""The live monitor: robots report episodes, people look at one page, alarms reach them.

From the bottom up: `tables` and `database` keep everything; `models` checks what is sent; `bindings`
binds a stream to a certificate and a detector; `live_detectors` says where that stands; `counting` counts
episodes, exactly once and durably; `access` knows who may do what; `api`, `pages` and `forms` are what
the network sees, behind `guard`, put together in `application` and run by `process`. `client` is the robot's
side and needs nothing of all this.
"""
