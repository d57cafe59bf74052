package message

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// metadataVector is the metadata of a call, with its entries or with the reason for its rejection.
type metadataVector struct {
	Name, Reason    string
	Hex             hexBytes
	Refused, Oneway bool
	Entries         []struct {
		Key   string
		Text  string
		Bytes *hexBytes
	}
}

func readMetadataVectors(t testing.TB) []metadataVector {
	data, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	var v struct{ Metadata []metadataVector }
	require.NoError(t, json.Unmarshal(data, &v))
	return v.Metadata
}

// goMap returns the entries of v.
func (v *metadataVector) goMap() map[string]any {
	m := make(map[string]any)
	for _, e := range v.Entries {
		if m[e.Key] = e.Text; e.Bytes != nil {
			m[e.Key] = append([]byte{}, *e.Bytes...)
		}
	}
	return m
}

// Metadata is encoded as in the vectors.
func TestMetadata_Vectors(t *testing.T) {
	read, refused := 0, 0
	for _, v := range readMetadataVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			m, err := ParseMetadata(v.Hex)
			require.Equal(t, err, CheckMetadata(v.Hex))
			if v.Refused {
				refused++
				require.ErrorIs(t, err, codec.ErrBadParams)
				return
			}
			read++
			require.NoError(t, err)
			require.Equal(t, v.goMap(), m)
			require.Len(t, m, len(v.Entries))
			again, err := AppendMetadata(nil, m)
			require.NoError(t, err)
			if v.Oneway {
				require.NotEqual(t, []byte(v.Hex), again)
				return
			}
			require.Equal(t, hex.EncodeToString(v.Hex), hex.EncodeToString(again))
		})
	}
	require.GreaterOrEqual(t, read, 7)
	require.GreaterOrEqual(t, refused, 20)
}

// A refusal of metadata names the entry.
func TestMetadata_RefusalNames(t *testing.T) {
	for _, v := range readMetadataVectors(t) {
		if v.Refused {
			err := CheckMetadata(v.Hex)
			require.ErrorContains(t, err, "metadata: ", v.Name)
			require.ErrorContains(t, err, v.Reason, v.Name)
		}
	}
}
