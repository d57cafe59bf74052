package classic

import (
	"fmt"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// nameOf names the i-th value of a map by its key.
func nameOf(key reflect.Value, i int) string {
	for key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	switch {
	case key.Kind() == reflect.String:
		return fmt.Sprintf("[%q]", truncate.Text(key.String(), 64))
	case key.CanInt():
		return fmt.Sprintf("[%d]", key.Int())
	}
	return fmt.Sprintf("[of entry %d]", i)
}

// goMap reads a map into a Go map.
func (d *decoder) goMap(to reflect.Value, depth int) {
	n := d.count()
	m := reflect.MakeMapWithSize(to.Type(), n)
	for i := range n {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if d.value(key, depth+1); d.err != nil {
			d.failedWithin(fmt.Sprintf("[key of entry %d]", i))
			return
		}
		if d.value(value, depth+1); d.err != nil {
			d.failedWithin(nameOf(key, i))
			return
		}
		if !key.Comparable() {
			d.fail(&codec.TypeError{
				Want: "a map with plain keys", Got: "one with lists, maps or structs as keys",
				Err: fmt.Errorf("it cannot be stored in a %v, but in a classic.Map", to.Type()),
			})
			return
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
}
