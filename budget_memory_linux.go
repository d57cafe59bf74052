package asterisque

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// machineMemory returns the bytes of memory that this process may have at most: what the machine
// has, or its control group if that is less. 0 says that it is not known.
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
