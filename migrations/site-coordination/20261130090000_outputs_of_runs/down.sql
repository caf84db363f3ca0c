DROP INDEX command_of_run;
