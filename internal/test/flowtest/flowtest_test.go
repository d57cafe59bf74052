package flowtest_test

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/flowtest"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire" // smux://
)

var soak = flag.Bool("soak", false, "run all there is, which takes minutes")

func TestMain(m *testing.M) { leak.Main(m) }

func TestScenarios_NeverStandStill(t *testing.T) {
	extent := flowtest.Brief
	if *soak {
		extent = flowtest.Soak
	}
	for name, wires := range map[string]flowtest.Kind{
		"over TCP":      flowtest.URL("tcp://127.0.0.1:0"),
		"over net.Pipe": flowtest.NetPipe,
		"over TLS":      flowtest.URL("tls://127.0.0.1:0"),
		"over smux":     flowtest.URL("smux://127.0.0.1:0"),
		"in memory":     flowtest.URL("mem://room"),
	} {
		t.Run(name, func(t *testing.T) { flowtest.Run(t, wires, extent) })
	}
}

func TestScenarios_WithCutWires(t *testing.T) {
	if !*soak {
		t.Skip("takes minutes: see -soak")
	}
	for name, wires := range map[string]flowtest.Kind{
		"TCP":      flowtest.Proxied,
		"net.Pipe": flowtest.NetPipe,
		"TLS":      flowtest.URL("tls://127.0.0.1:0"),
		"smux":     flowtest.URL("smux://127.0.0.1:0"),
	} {
		t.Run(name, func(t *testing.T) { flowtest.RunCut(t, wires, flowtest.Soak) })
	}
}
