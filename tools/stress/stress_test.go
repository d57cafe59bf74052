package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// module writes a module with one test, and changes the working directory to it.
func module(t *testing.T, body string) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	write("go.mod", "module example.com/stressed\n\ngo 1.25\n")
	write("a_test.go", "package stressed\n\nimport \"testing\"\n\nfunc TestSome(t *testing.T) {\n"+body+"\n}\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "b"), 0o777))
	write("b/b.go", "package b\n")
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
}

func TestStress_ExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		code int
		says []string
	}{
		"good":  {`t.Log("good")`, 0, []string{"1 packages: 0 tests have failed"}},
		"fails": {`t.Error("bad")`, 1, []string{"1 tests have failed", "TestSome of example.com/stressed: ", "go test -count=1 -run '^TestSome$' -cpu 4 -shuffle "}},
		"dies":  {`panic("bad")`, 1, []string{"TestSome of example.com/stressed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			outputs := t.TempDir()
			module(t, c.body)
			var out, errs bytes.Buffer
			args := []string{"-for", "100ms", "-race", "off", "-cpu", "4", "-busy", "1", "-outputs", outputs}
			require.Equal(t, c.code, execute(context.Background(), args, &out, &errs), errs.String())
			for _, s := range c.says {
				require.Contains(t, out.String(), s)
			}
			kept, err := os.ReadDir(outputs)
			require.NoError(t, err)
			require.Len(t, kept, c.code)
		})
	}
}

func TestStress_Mistakes(t *testing.T) {
	module(t, "")
	for want, args := range map[string][]string{
		"-cpu":               {"-cpu", "x"},
		"-race":              {"-race", "maybe"},
		"-for":               {"-for", "0s"},
		"-busy":              {"-busy", "-1"},
		"-parallel":          {"-parallel", "0"},
		"go list":            {"./nowhere"},
		"no package of":      {"./b"},
		"flag provided but ": {"-x"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, execute(context.Background(), args, &out, &errs), want)
		require.Contains(t, errs.String(), want)
	}
	require.Zero(t, execute(context.Background(), []string{"-h"}, os.Stdout, new(bytes.Buffer)))
}

func TestFailed(t *testing.T) {
	for name, c := range map[string]struct {
		printed string
		want    []string
	}{
		"two":      {"--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\n--- FAIL: TestA (0.1s)\nFAIL", []string{"TestA", "TestB"}},
		"panic":    {"--- FAIL: TestB (0.00s)\npanic: bad [recovered]\n", []string{"TestB"}},
		"timeout":  {"panic: test timed out after 1s\n\trunning tests:\n\t\tTestLong/part (1s)\n\ngoroutine 1", []string{"TestLong"}},
		"no name":  {"fatal error: all goroutines are asleep", []string{unnamed}},
		"no print": {"", []string{unnamed}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, failed([]byte(c.printed))) })
	}
}
