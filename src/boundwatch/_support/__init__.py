"""What every part needs and no part owns: files, validation, progress, processes, notebooks."""
