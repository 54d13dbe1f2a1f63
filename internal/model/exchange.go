package model

// ExchangedBytes is W_i: the bytes a member receives in a biological second
// when each of cells sends rate bytes, members share the cells evenly, and
// each cell listens to synapses others.
func ExchangedBytes(cells, members, synapses int, rate float64) float64 {
	own := float64(cells) / float64(members)
	drawn := own * float64(synapses) / float64(members)
	return rate * float64(members) * min(drawn, own)
}

// ProducedBytes is N_i·F: the bytes a member's own cells send in a second.
func ProducedBytes(cells, members int, rate float64) float64 {
	return float64(cells) / float64(members) * rate
}
