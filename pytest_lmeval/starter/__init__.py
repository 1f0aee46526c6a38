"""Write the files of ``lmeval init``, and add its settings to pytest's configuration files."""
