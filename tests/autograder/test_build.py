def test_x(built_once):
    print(built_once.report)
