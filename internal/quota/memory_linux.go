package quota

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// machineMemory returns the maximum memory of this process in bytes: that of the machine, or of its
// control group if that is less. 0 means unknown.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	most := int64(info.Totalram) * int64(info.Unit)
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 {
			most = min(most, n)
		}
	}
	return most
}
