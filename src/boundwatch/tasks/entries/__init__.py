"""Our own tasks as the command line sees them: its --help needs neither torch nor a physics engine."""
