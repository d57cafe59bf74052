//go:build !linux

package asterisque

// machineMemory returns 0: how much memory the machine has is not known without further means.
func machineMemory() int64 { return 0 }
