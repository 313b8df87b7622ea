"""The commands. `sandbox_sim.cli` imports a module when its command is called."""
