package vectors

// values breaks the rules for ignored values.
func values() []mutant {
	const head = "major, n := r.Head()\n\tswitch major {"
	lenient := func(f string) string { return "r." + f + "()\n\t" + head }
	list := []mutant{
		{"3-encoding: ignored values are nested 5 deep", reader, `depth == maxDepth {`, `depth == maxDepth+1 {`},
		{"3-encoding: ignored values are nested as deep as they like", reader, `depth == maxDepth {`, `false {`},
		{"3-encoding: ignored values are nested 3 deep at most", reader, `depth == maxDepth {`, `depth == maxDepth-1 {`},
		{"3-encoding: an empty array may be the 5th level", reader, `depth == maxDepth {`, `depth == maxDepth && n > 0 {`},
		{"3-encoding: ignored arrays do not count as a level", reader, `r.skipItems(at, n, depth)`, `r.skipItems(at, n, depth-1)`},
		{"3-encoding: ignored maps do not count as a level", reader, `r.skipItems(at, 2*n, depth)`, `r.skipItems(at, 2*n, depth-1)`},
		{"3-encoding: ignored tags do not count as a level", reader, `r.skipItems(at, 1, depth)`, `r.skipItems(at, 1, depth-1)`},
		{"3-encoding: ignored arrays count as two levels", reader, `r.skipItems(at, n, depth)`, `r.skipItems(at, n, min(depth+1, maxDepth))`},
		{"3-encoding: ignored maps count as two levels", reader, `r.skipItems(at, 2*n, depth)`, `r.skipItems(at, 2*n, min(depth+1, maxDepth))`},
		{"3-encoding: ignored tags count as two levels", reader, `r.skipItems(at, 1, depth)`, `r.skipItems(at, 1, min(depth+1, maxDepth))`},
		{"3-encoding: the 4th level may not be a tag", reader, `case Tag:`, "case Tag:\n\t\tif depth == maxDepth-1 {\n\t\t\tr.Fail(at, \"tag\")\n\t\t}"},
		{"3-encoding: the keys of ignored maps do not count as inside", reader, `r.skipItems(at, 2*n, depth)`,
			"if depth == maxDepth {\n\t\t\tr.Fail(at, \"deep\")\n\t\t}\n\t\tfor ; n > 0 && r.Err == nil; n-- {\n\t\t\tr.skip(depth)\n\t\t\tr.skip(depth + 1)\n\t\t}"},
		{"3-encoding: an ignored array has as many elements as a signed number says", reader, `for ; n > 0 && r.Err == nil; n-- {`, `for n := int64(n); n > 0 && r.Err == nil; n-- {`},
		{"3-encoding: the number of an ignored map wraps around", reader, `if n > uint64(len(r.Data)) {`, `if false {`},
		{"3-encoding: an ignored map has one item for each entry", reader, `r.skipItems(at, 2*n, depth)`, `r.skipItems(at, n, depth)`},
		{"3-encoding: an ignored tag has nothing in it", reader, `r.skipItems(at, 1, depth)`, `r.skipItems(at, 0, depth)`},
		{"3-encoding: ignored text has to be UTF-8", reader, head, "major, n := r.Head()\n\tif major == Text && !utf8.Valid(r.Data[r.At:min(len(r.Data), r.At+int(n))]) {\n\t\tr.Fail(at, \"text\")\n\t}\n\tswitch major {"},
		{"3-encoding: ignored maps need ascending keys", reader, `r.skipItems(at, 2*n, depth)`, ordered(`k <= before`)},
		{"3-encoding: a key comes once in ignored maps", reader, `r.skipItems(at, 2*n, depth)`, ordered(`k == before`)},
		{"3-encoding: ignored maps have no keys but numbers", reader, `r.skipItems(at, 2*n, depth)`, ordered(`i >= 0 && k[0] > 0x1b`)},
		{"3-encoding: ignored tags are refused", reader, `r.skipItems(at, 1, depth)`, `r.Fail(at, "tag")`},
		{"3-encoding: of an ignored tag its number is bounded", reader, head, "major, n := r.Head()\n\tif major == Tag && n > MaxNumber {\n\t\tr.Fail(at, \"tag\")\n\t}\n\tswitch major {"},
		{"3-encoding: an ignored number is bounded", reader, head, "major, n := r.Head()\n\tif major == Unsigned && n > MaxNumber {\n\t\tr.Fail(at, \"number\")\n\t}\n\tswitch major {"},
		{"3-encoding: an ignored negative number is bounded", reader, head, "major, n := r.Head()\n\tif major == Negative && n > MaxNumber {\n\t\tr.Fail(at, \"number\")\n\t}\n\tswitch major {"},
		{"3-encoding: an ignored undefined is refused", reader, head, "major, n := r.Head()\n\tif major == Other && n == 23 {\n\t\tr.Fail(at, \"undefined\")\n\t}\n\tswitch major {"},
		{"3-encoding: an ignored simple value without a meaning is refused", reader, head, "major, n := r.Head()\n\tif major == Other && n < 20 && r.At == at+1 {\n\t\tr.Fail(at, \"simple\")\n\t}\n\tswitch major {"},
		{"3-encoding: an ignored null is refused", reader, head, "major, n := r.Head()\n\tif major == Other && n == 22 {\n\t\tr.Fail(at, \"null\")\n\t}\n\tswitch major {"},
		{"3-encoding: ignored values need not be in the shortest form", reader, head, lenient("Shorten")},
		{"3-encoding: a map that is ignored is empty", reader, `r.skipItems(at, 2*n, depth)`, "if n == 0 {\n\t\t\tr.Fail(at, \"empty\")\n\t\t}\n\t\tr.skipItems(at, 2*n, depth)"},
	}
	for _, major := range []string{"Bytes", "Text", "Array", "Map"} {
		list = append(list, mutant{"3-encoding: ignored " + major + " of indefinite length", reader, head,
			"if at < len(r.Data) && r.Data[at] == " + major + "|31 {\n\t\tr.Definite()\n\t}\n\t" + head})
	}
	return list
}

// ordered checks the keys k of an ignored map, and rejects those that satisfy a condition.
func ordered(condition string) string {
	return `before, probe := "", *r
		for i := 0; i < int(n) && probe.Err == nil; i++ {
			from := probe.At
			if probe.skip(depth + 1); probe.Err != nil {
				break
			}
			k := string(probe.Data[from:probe.At])
			if i > 0 && ` + condition + ` {
				r.Fail(at, "keys")
			}
			before = k
			probe.skip(depth + 1)
		}
		_ = before
		r.skipItems(at, 2*n, depth)`
}
