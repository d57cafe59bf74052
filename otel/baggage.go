package asterisqueotel

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/baggage"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
)

// baggageKey is the metadata key of the baggage, the same as the header of W3C Baggage.
const baggageKey = "baggage"

// withBaggage returns ctx with its baggage in the metadata of an outbound call, as far as there is
// room. A baggage entry that the metadata already has stays.
func withBaggage(ctx context.Context, c *asterisque.Call) context.Context {
	bag := baggage.FromContext(ctx)
	if bag.Len() == 0 {
		return ctx
	}
	others := c.Metadata(ctx)
	if _, said := others[baggageKey]; said {
		return ctx
	}
	text := pack(bag, roomBeside(others))
	if text == "" {
		return ctx
	}
	return asterisque.ContextWithMetadata(ctx, asterisque.Metadata{baggageKey: text})
}

// roomBeside returns how many bytes baggage may have next to other metadata.
func roomBeside(others asterisque.Metadata) int {
	if len(others) >= message.MaxMetadataEntries {
		return 0
	}
	room := message.MaxMetadata - len(baggageKey)
	for key, value := range others {
		room -= len(key)
		switch v := value.(type) {
		case string:
			room -= len(v)
		case []byte:
			room -= len(v)
		}
	}
	return room
}

// pack returns bag as W3C Baggage, ordered by key. If it exceeds room, whole members are left out,
// the largest first, so that as many members as possible remain.
func pack(bag baggage.Baggage, room int) string {
	members := make([]string, 0, bag.Len())
	for _, m := range bag.Members() {
		if text := m.String(); text != "" { // empty for a key that is no token
			members = append(members, text)
		}
	}
	// by size, then by key, so that equal baggage loses the same members
	slices.SortFunc(members, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	size, fit := -1, 0
	for _, m := range members {
		if size += len(m) + 1; size > room {
			break
		}
		fit++
	}
	members = members[:fit]
	slices.Sort(members)
	return strings.Join(members, ",")
}

// unpack returns ctx with the baggage that came with a call, or ctx itself if there is none.
// Invalid members are left out.
func unpack(ctx context.Context, sent string) context.Context {
	bag, _ := baggage.Parse(sent)
	if bag.Len() == 0 {
		return ctx
	}
	return baggage.ContextWithBaggage(ctx, bag)
}
