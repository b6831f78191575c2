"""The workbench's server: runs models, keeps traces, hands the page what it asks for."""
