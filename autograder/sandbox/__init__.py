"""The sandbox: students' code runs here, apart from the grader and from each other."""
