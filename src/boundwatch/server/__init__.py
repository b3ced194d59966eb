"""The live monitor: robots report episodes, people look at one page, alarms reach them.

From the bottom up: `tables` and `database` keep everything; `models` checks what is sent; `live_detectors`
says where a stream stands, `bindings` what it is watched with; `counting` counts episodes, exactly once and
durably; `access` knows who may do what; `api` and `pages` are what the network sees, behind `guard`, put
together and run by `application`. `client` is the robot's side and needs nothing of all this.
"""
