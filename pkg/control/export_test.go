package control

// Errors between the two ends of a call, for tests.
var (
	ToStatus   = toStatus
	FromStatus = fromStatus
)
