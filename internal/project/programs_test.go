package project

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBinaries_NoneCommitted finds binaries that go build leaves in the folder of a module with one
// program, and that are easily committed.
func TestBinaries_NoneCommitted(t *testing.T) {
	for _, file := range filesThat(t, "") {
		if filepath.Ext(file) == "" && !strings.HasPrefix(file, "bin/") {
			require.False(t, isProgram(file), "%s: remove it, and build with -o /dev/null, or into bin", file)
		}
	}
}

func TestBinaries_AreRecognized(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	require.True(t, isProgram(self))
}

func isProgram(file string) bool {
	f, err := elf.Open(file)
	if err == nil {
		f.Close()
		return true
	}
	m, err := macho.Open(file)
	if err == nil {
		m.Close()
		return true
	}
	p, err := pe.Open(file)
	if err == nil {
		p.Close()
	}
	return err == nil
}
