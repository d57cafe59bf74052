package vectors

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 -]`)
)

// slugs are the anchors of the headings of the specification.
func slugs(t *testing.T) (list []string) {
	for _, h := range heading.FindAllStringSubmatch(read(t, "spec/protocol.md"), -1) {
		list = append(list, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return list
}

func TestVectors_NameSections(t *testing.T) {
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(read(t, "spec/vectors.json")), &file))
	there := slugs(t)
	for _, kind := range []string{"valid", "invalid", "integers", "metadata", "scenarios"} {
		var list []struct{ Name, Section string }
		require.NoError(t, json.Unmarshal(file[kind], &list))
		require.NotEmpty(t, list, kind)
		names := map[string]bool{}
		for _, v := range list {
			require.Contains(t, there, v.Section, "%s: %s", kind, v.Name)
			require.False(t, names[v.Name], "%s: there are two %s", kind, v.Name)
			names[v.Name] = true
		}
	}
}
