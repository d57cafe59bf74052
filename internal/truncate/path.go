package truncate

import "strings"

// mostPath bounds a path, in bytes, so that the reason still has room in the message.
const mostPath = 400

// Path puts the name of a part, such as ".window" or "[3]", before the path within that part. The
// beginning of a long path is omitted.
func Path(name, path string) string {
	switch {
	case strings.HasPrefix(path, "…"):
		return path
	case len(name)+len(path) > mostPath:
		return "…" + path
	}
	return name + path
}
