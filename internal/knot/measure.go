package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// measure returns the figure of each row for the repository in the current folder.
func measure(rows []row) (figures []figure, err error) {
	packages, err := packagesOf(rows)
	if err != nil {
		return nil, err
	}
	library, tests, err := lines(".")
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		var f figure
		switch p, ok := packages[r.of]; {
		case r.of == "library":
			f, err = library.figure(r.what)
		case r.of == "tests":
			f, err = tests.figure(r.what)
		case ok:
			f, err = p.figure(r.what)
		default:
			f = figure{number: absent} // only a package that did not exist before may be missing
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.of, r.what, err)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// packagesOf loads the packages of rows. A package that does not exist yet may be missing.
func packagesOf(rows []row) (map[string]*loaded, error) {
	var folders []string
	packages := make(map[string]*loaded)
	for _, r := range rows {
		if _, known := packages[r.of]; known || r.of == "library" || r.of == "tests" {
			continue
		}
		if _, err := os.Stat(r.of); err != nil && r.reached == absent {
			continue
		}
		packages[r.of] = nil
		folders = append(folders, r.of)
	}
	all, err := load(folders)
	for i, p := range all {
		packages[folders[i]] = p
	}
	return packages, err
}

func (p *loaded) figure(what string) (figure, error) {
	kind, typ, _ := strings.Cut(what, "-of-")
	home, away := p.methods(typ)
	switch kind {
	case "cycle":
		cycle := largestCycle(p.uses())
		return figure{len(cycle), strings.Join(cycle, " ")}, nil
	case "pairs":
		pairs := mutual(p.uses())
		return figure{len(pairs), fmt.Sprint(pairs)}, nil
	case "methods":
		return figure{len(home) + len(away), strings.Join(home, " ")}, nil
	case "methods-away":
		return figure{len(away), strings.Join(away, " ")}, nil
	case "fields":
		n := p.fields(typ)
		if n == 0 {
			return figure{}, fmt.Errorf("no struct %s", typ)
		}
		return figure{number: n}, nil
	}
	return figure{}, fmt.Errorf("a package has no %s", what)
}

func (l *lengths) figure(what string) (figure, error) {
	if limit, ok := strings.CutPrefix(what, "files-over-"); ok {
		return over(l.files, limit)
	}
	if limit, ok := strings.CutPrefix(what, "functions-over-"); ok {
		return over(l.functions, limit)
	}
	switch what {
	case "function-median":
		return figure{number: part(l.functions, 0.5)}, nil
	case "function-p90":
		return figure{number: part(l.functions, 0.9)}, nil
	}
	return figure{}, fmt.Errorf("files have no %s", what)
}

// over counts the files or functions with more lines than limit.
func over(sorted []length, limit string) (figure, error) {
	most, err := strconv.Atoi(limit)
	if err != nil {
		return figure{}, err
	}
	var long []string
	for _, l := range sorted {
		if l.lines > most {
			long = append(long, fmt.Sprintf("%s (%d)", l.where, l.lines))
		}
	}
	return figure{len(long), strings.Join(long, ", ")}, nil
}

// tell prints all measurements of packages.
func tell(w io.Writer, folders []string, typ string) error {
	packages, err := load(folders)
	if err != nil {
		return err
	}
	for i, p := range packages {
		edges := p.uses()
		cycle, pairs := largestCycle(edges), mutual(edges)
		fmt.Fprintf(w, "%s: files %d, uses %d, mutual pairs %d, largest cycle %d\n",
			folders[i], len(p.files), len(edges), len(pairs), len(cycle))
		fmt.Fprintln(w, "in the cycle:", strings.Join(cycle, " "))
		for _, e := range pairs {
			fmt.Fprintln(w, "use each other:", e.from, e.to)
		}
		home, away := p.methods(typ)
		fmt.Fprintf(w, "%s: %d fields, %d methods in its files, %d elsewhere: %s\n",
			typ, p.fields(typ), len(home), len(away), strings.Join(away, " "))
	}
	return nil
}
