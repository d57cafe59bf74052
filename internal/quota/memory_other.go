//go:build !linux

package quota

// machineMemory returns 0: the memory of the machine is unknown on this system.
func machineMemory() int64 { return 0 }
