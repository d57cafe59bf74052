package project

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unproved contains the sections of the specification that no vector and no scenario can prove,
// with the reason.
var unproved = map[string]string{
	"dividing-the-room": "how a side comes to its numbers no other side can tell",
}

// TestSpecification_IsProved lists the sections with rules that neither a vector nor a scenario
// claims to prove, and the claimed names that are no section.
func TestSpecification_IsProved(t *testing.T) {
	sections := rules(text(t, "spec/protocol.md"))
	require.Contains(t, sections, "3-encoding")
	proofs := make(map[string]int)
	for _, file := range []string{"spec/vectors.json", "spec/scenarios.json"} {
		var arrays map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text(t, file)), &arrays), file)
		for name, array := range arrays {
			var all []struct{ Name, Section string }
			if json.Unmarshal(array, &all) != nil {
				continue // a version, a comment
			}
			for _, one := range all {
				require.Contains(t, sections, one.Section, "%s: %s: %s names no section that has rules", file, name, one.Name)
				proofs[one.Section]++
			}
		}
	}
	for section := range sections {
		why, excused := unproved[section]
		if excused {
			require.Zero(t, proofs[section], "%s is proved, although %s", section, why)
			continue
		}
		require.NotZero(t, proofs[section], "no vector and no scenario proves spec/protocol.md#%s", section)
	}
	for section := range unproved {
		require.Contains(t, sections, section)
	}
}

// rules returns the anchors of the sections with rules for peers: from section 2 on, up to the
// example at the end. A heading that is directly followed by another one is not included.
func rules(spec string) map[string]bool {
	anchors := make(map[string]bool)
	heading := regexp.MustCompile(`(?m)^##+ (.+)\n+`)
	places := heading.FindAllStringSubmatchIndex(spec, -1)
	within := false
	for i, place := range places {
		title := spec[place[2]:place[3]]
		switch {
		case strings.HasPrefix(title, "2. "):
			within = true
		case strings.HasPrefix(title, "16. "):
			within = false
		}
		empty := i+1 < len(places) && places[i+1][0] == place[1]
		if within && !empty {
			anchors[anchor(title)] = true
		}
	}
	return anchors
}

// anchor returns the link target of a heading.
func anchor(title string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(kept, " ", "-")
}
