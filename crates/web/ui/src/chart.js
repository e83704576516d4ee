// The overview's charts.
