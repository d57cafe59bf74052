package roomtest_test

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/internal/roomtest"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire" // smux://
)

var soak = flag.Bool("soak", false, "run all there is, which takes minutes")

func TestMain(m *testing.M) { leak.Main(m) }

func TestScenarios_NeverStandStill(t *testing.T) {
	extent := roomtest.Brief
	if *soak {
		extent = roomtest.Soak
	}
	for name, wires := range map[string]roomtest.Kind{
		"over TCP":      roomtest.URL("tcp://127.0.0.1:0"),
		"over net.Pipe": roomtest.NetPipe,
		"over TLS":      roomtest.URL("tls://127.0.0.1:0"),
		"over smux":     roomtest.URL("smux://127.0.0.1:0"),
		"in memory":     roomtest.URL("mem://room"),
	} {
		t.Run(name, func(t *testing.T) { roomtest.Run(t, wires, extent) })
	}
}

func TestScenarios_WithCutWires(t *testing.T) {
	if !*soak {
		t.Skip("takes minutes: see -soak")
	}
	for name, wires := range map[string]roomtest.Kind{
		"TCP":      roomtest.Proxied,
		"net.Pipe": roomtest.NetPipe,
		"TLS":      roomtest.URL("tls://127.0.0.1:0"),
		"smux":     roomtest.URL("smux://127.0.0.1:0"),
	} {
		t.Run(name, func(t *testing.T) { roomtest.RunCut(t, wires, roomtest.Soak) })
	}
}
