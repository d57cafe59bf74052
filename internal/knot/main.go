// Command knot measures the coupling of the files of a package: which file uses declarations of
// another file (package-level names, methods, fields), as resolved by the type checker. It counts
// the pairs of files that use each other and the files of the largest cycle of use. It also counts
// the methods and fields of a type, and the lines of files and functions.
//
//	go run ./internal/knot              checks the bounds in bounds.txt, as CI does
//	go run ./internal/knot -lower       writes the reached values into bounds.txt
//	go run ./internal/knot . ./pipe     describes packages: the cycle, the pairs, the methods
//
// A figure must not exceed the reached value in bounds.txt, and the reached value must fall to the
// bound. The option -lower never raises a value.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("knot: ")
	typ := flag.String("type", "Session", "the type for methods and fields")
	lower := flag.Bool("lower", false, "write the reached values into the table of bounds")
	flag.Parse()
	var err error
	if flag.NArg() > 0 {
		err = tell(os.Stdout, flag.Args(), *typ)
	} else {
		err = checkRepository(*lower)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// checkRepository compares the repository of the current folder with its table of bounds.
func checkRepository(lower bool) error {
	root, err := repository()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	text, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	rows, err := parseRows(string(text))
	if err != nil {
		return err
	}
	figures, err := measure(rows)
	if err != nil {
		return err
	}
	if lower {
		return os.WriteFile(table, []byte(lowered(string(text), rows, figures)), 0o644)
	}
	return check(os.Stdout, rows, figures)
}

// repository returns the folder of the workspace, the folder of go.work.
func repository() (string, error) {
	out, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOWORK: %w", err)
	}
	work := strings.TrimSpace(string(out))
	root, ok := strings.CutSuffix(work, "go.work")
	if !ok {
		return "", fmt.Errorf("no go.work here, but %q", work)
	}
	return root, nil
}
